// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/ChromeTrace.h"

#include "runtime/plan/Check.h"
#include "runtime/support/atomic_file.h"
#include "runtime/support/json_text.h"
#include "runtime/trace/Profile.h"

#include <cstdio>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

class TraceWriter {
public:
  explicit TraceWriter(const Session &session)
      : session_(session), tracer_(*session.tracer()), program_(*session.plan().program("train_step")),
        origin_(tracer_.runs().front().begin) {}

  Status write(const std::string &path) {
    if (Status status = file_.open(path); !status.ok())
      return status;
    text_ = "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"model\": " +
            jsonString(session_.plan().tables().model() ? session_.plan().tables().model()->c_str() : "") +
            ", \"target\": " + jsonString(session_.info().target) + peaks() + "},\n\"traceEvents\": [\n";
    for (size_t worker = 0; worker < tracer_.tracks().size(); ++worker)
      nameTrack(worker);
    for (size_t worker = 0; worker < tracer_.tracks().size() && status_.ok(); ++worker)
      writeTrack(worker);
    text_ += "\n]}\n";
    flush();
    return status_.ok() ? file_.commit() : std::move(status_);
  }

private:
  // Returns facts that a reader needs to compare measured times with the minimum: the number of devices that run each
  // launch, and the peak rates of all devices if they are known.
  std::string peaks() const {
    std::string groups = ", \"groups\": " + std::to_string(session_.groupDevices());
    double flops = tracer_.options().peakFlops, bytes = tracer_.options().peakBytes;
    if (flops <= 0 || bytes <= 0) {
      flops = session_.info().peak_flops;
      bytes = session_.info().peak_bandwidth;
    }
    if (flops <= 0 || bytes <= 0)
      return groups;
    return groups + ", \"peak_flops\": " + jsonNumber(flops) + ", \"peak_bandwidth\": " + jsonNumber(bytes);
  }

  // Several devices that share variables share one thread pool, so a worker is assigned to its device by its index.
  std::string place(size_t worker) const {
    auto threads = static_cast<size_t>(session_.tracksOfDevice());
    return "\"pid\": " + std::to_string(worker / threads) + ", \"tid\": " + std::to_string(worker % threads);
  }

  void nameTrack(size_t worker) {
    auto threads = static_cast<size_t>(session_.tracksOfDevice());
    auto name = [&](const char *what, const std::string &text) {
      begin();
      text_ += std::string("{\"ph\": \"M\", \"name\": \"") + what + "\", " + place(worker) +
               ", \"args\": {\"name\": \"" + text + "\"}}";
    };
    if (worker % threads == 0)
      name("process_name", "device " + std::to_string(worker / threads));
    if (session_.namesTracks())
      name("thread_name", worker % threads ? "links" : "compute");
    else
      name("thread_name", "thread " + std::to_string(worker % threads));
  }

  void writeTrack(size_t worker) {
    std::span<const Span> spans = tracer_.tracks()[worker].spans();
    int64_t before = 0;
    for (uint32_t r = 0; r < tracer_.runs().size(); ++r) {
      const RecordedRun &run = tracer_.runs()[r];
      if (worker == 0 && before)
        event(worker, "between steps", "host", before, run.begin, "");
      before = run.end;
      size_t count = 0;
      while (count < spans.size() && spans[count].run == r)
        ++count;
      event(worker, "step " + std::to_string(run.number), "step", run.begin, run.end,
            "\"samples\": " + std::to_string(run.samples));
      writeRun(worker, run, spans.first(count));
      spans = spans.subspan(count);
    }
  }

  void writeRun(size_t worker, const RecordedRun &run, std::span<const Span> spans) {
    int64_t first = spans.empty() ? run.end : spans.front().begin;
    event(worker, "wait for the start", "wait", run.begin, first, "");
    int64_t group = -1; // the all-reduce that the next spans belong to
    for (size_t i = 0; i < spans.size(); ++i) {
      const Span &span = spans[i];
      if (span.step == count(program_.steps())) { // copies of inputs and results
        event(worker, span.kind == SpanKind::Wait ? "wait" : "copy", span.kind == SpanKind::Wait ? "wait" : "transfer",
              span.begin, span.end, "");
        continue;
      }
      const fb::Step &step = *program_.steps()->Get(span.step);
      if (step.kernel() < 0 && group != span.step) {
        size_t last = i;
        while (last + 1 < spans.size() && spans[last + 1].step == span.step)
          ++last;
        event(worker, "all-reduce " + std::to_string(step.collective()), "collective", span.begin, spans[last].end,
              "\"bytes\": " + std::to_string(step.partial_bytes()));
        group = span.step;
      }
      shard(worker, run, span, step);
    }
    if (!spans.empty())
      event(worker, "wait for the end", "wait", spans.back().end, run.end, "");
  }

  void shard(size_t worker, const RecordedRun &run, const Span &span, const fb::Step &step) {
    static constexpr const char *names[] = {"", "wait", "transfer", "sum"};
    if (span.kind != SpanKind::Kernel)
      return event(worker, names[static_cast<size_t>(span.kind)], names[static_cast<size_t>(span.kind)], span.begin,
                   span.end, "");
    StepFacts facts = factsOf(session_.plan(), step);
    auto samples = static_cast<uint64_t>(run.samples);
    std::string arguments = std::string("\"kind\": \"") + facts.kind + "\", \"layer\": " + jsonString(facts.layer) +
                            ", \"flops\": " + std::to_string(facts.flopsPerSample * samples + facts.flopsFixed) +
                            ", \"bytes\": " + std::to_string(facts.bytesPerSample * samples + facts.bytesFixed);
    event(worker, facts.name, "kernel", span.begin, span.end, arguments);
  }

  // Formats microseconds with three decimals, exact to the nanosecond.
  static std::string time(int64_t nanoseconds) {
    char text[40];
    snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
             static_cast<long long>(nanoseconds % 1000));
    return text;
  }

  void event(size_t worker, const std::string &name, const char *category, int64_t begin, int64_t end,
             const std::string &arguments) {
    this->begin();
    text_ += "{\"ph\": \"X\", \"name\": " + jsonString(name) + ", \"cat\": \"" + category + "\", " + place(worker) +
             ", \"ts\": " + time(begin - origin_) + ", \"dur\": " + time(end - begin) +
             (arguments.empty() ? "" : ", \"args\": {" + arguments + "}") + "}";
    if (text_.size() > size_t{1} << 20)
      flush();
  }

  void begin() {
    if (!first_)
      text_ += ",\n";
    first_ = false;
  }

  void flush() {
    if (status_.ok())
      status_ = file_.write(text_.data(), text_.size());
    text_.clear();
  }

  const Session &session_;
  const Tracer &tracer_;
  const fb::Program &program_;
  int64_t origin_;
  AtomicFile file_;
  std::string text_;
  Status status_;
  bool first_ = true;
};

} // namespace

Status writeChromeTrace(const Session &session, const std::string &path) {
  if (!session.tracer() || session.tracer()->runs().empty())
    return {MT_INVALID, session.tracer() ? "no step to write a trace of: " + std::to_string(session.tracer()->seen()) +
                                               " steps ran, none of them in the traced range"
                                         : "no step to write a trace of: expected mtrun_trace_start before"};
  return TraceWriter(session).write(path);
}

} // namespace mtrun
