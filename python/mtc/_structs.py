# SPDX-License-Identifier: Apache-2.0
"""The structs and callbacks of mt.h, mtc.h and mtrun.h, field by field. test/python/test_structs.py compares them."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, TypeVar

from mtc._checks import fits

LogCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
LineCallback = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class TensorInfo(ctypes.Structure):
    """mtrun_tensor_info"""

    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int32), ("shape", ctypes.POINTER(c_int64)),
                ("role", c_int), ("optional", c_int), ("kind", c_int), ("limit", c_int64)]


class CompileOptions(ctypes.Structure):
    """mtc_options"""

    _fields_ = [
        ("struct_size", c_size_t), ("batch", c_int64), ("shards", c_int32), ("fast", c_int), ("target", c_char_p),
        ("cpu", c_char_p), ("seed", c_int64), ("device_memory", c_int64), ("stop_after", c_char_p),
        ("dump_stages", c_char_p), ("timing", c_int), ("log", LogCallback), ("log_user", c_void_p), ("loss", c_char_p),
        ("optimizer", c_char_p), ("metrics", c_char_p), ("drop_unsupported_metrics", c_int), ("sample_weights", c_int),
        ("weights", c_char_p), ("recompute", c_char_p), ("max_batch", c_int), ("freeze", c_char_p),
        ("trainable", c_char_p), ("batch_norm", c_char_p), ("precision", c_char_p), ("class_names", c_char_p),
        ("vocabulary", c_char_p), ("input_shape", c_char_p), ("no_weight_decay", c_char_p),
        ("micro_batches", c_int32), ("lengths", c_char_p), ("length_input", c_char_p),
        ("freeze_batch_norm", c_int), ("kinks", c_char_p), ("print_ir_before", c_char_p),
        ("print_ir_after", c_char_p)]


class InspectOptions(ctypes.Structure):
    """mtc_inspect_options"""

    _fields_ = [
        ("struct_size", c_size_t), ("html", c_int), ("trace", c_char_p), ("trace_size", c_size_t),
        ("against", c_char_p), ("against_size", c_size_t), ("name", c_char_p), ("against_name", c_char_p),
        ("gpu", c_char_p)]


class Options(ctypes.Structure):
    """mtrun_options"""

    _fields_ = [
        ("struct_size", c_size_t), ("devices", c_char_p), ("private_variables", c_int), ("no_pin", c_int),
        ("no_spin", c_int), ("cpu", c_char_p), ("seed", c_int64), ("log", LogCallback), ("log_user", c_void_p),
        ("processes", c_int32), ("process", c_int32), ("local_process", c_int32), ("rendezvous", c_char_p),
        ("secret", c_char_p), ("timeout", c_double), ("steps_per_launch", c_int64), ("libraries", c_char_p),
        ("tuning", c_char_p), ("unchecked_ids", c_int), ("micro_batches", c_int64),
        ("force", c_int)]


class Results(ctypes.Structure):
    """mtrun_results"""

    _fields_ = [("values", ctypes.POINTER(c_double)), ("weights", ctypes.POINTER(c_double)),
                ("sums", ctypes.POINTER(c_double)), ("learning_rate", ctypes.POINTER(c_double))]


class SessionInfo(ctypes.Structure):
    """mtrun_session_info"""

    _fields_ = [
        ("devices", c_int32), ("threads_per_device", c_int32), ("variables_bytes", c_int64), ("peak_bytes", c_int64),
        ("collective_bytes", c_int64), ("target", c_char_p), ("seed", c_int64), ("process", c_int32),
        ("processes", c_int32), ("peak_flops", c_double), ("peak_bandwidth", c_double), ("taken_bytes", c_int64)]


class Field(ctypes.Structure):
    """mtrun_field"""

    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int32), ("shape", ctypes.POINTER(c_int64)),
                ("data", c_void_p), ("stride", c_int64)]


class Request(ctypes.Structure):
    """mtrun_request"""

    _fields_ = [("pass_", c_int64), ("first", c_int64), ("samples", ctypes.POINTER(c_int64)), ("rows", c_int64),
                ("fields", ctypes.POINTER(c_void_p)), ("message", c_void_p), ("message_size", c_size_t)]


ReadCallback = ctypes.CFUNCTYPE(c_int64, c_void_p, ctypes.POINTER(Request))


class Source(ctypes.Structure):
    """mtrun_source"""

    _fields_ = [("samples", c_int64), ("fields", ctypes.POINTER(Field)), ("field_count", c_int32),
                ("read", ReadCallback), ("user", c_void_p), ("threads", c_int32)]


class Progress(ctypes.Structure):
    """mtrun_progress"""

    _fields_ = [
        ("epoch", c_int64), ("epochs", c_int64), ("step", c_int64), ("steps", c_int64), ("seconds", c_double),
        ("metrics", c_int32), ("names", ctypes.POINTER(c_char_p)), ("values", ctypes.POINTER(c_double)),
        ("validation", c_int), ("epoch_end", c_int), ("step_values", ctypes.POINTER(c_double)),
        ("learning_rate", c_double), ("total_step", c_int64), ("input_wait", c_double)]


ProgressCallback = ctypes.CFUNCTYPE(c_int, c_void_p, ctypes.POINTER(Progress))
StopCallback = ctypes.CFUNCTYPE(c_int, c_void_p)
EpochCallback = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64)


class CheckpointOptions(ctypes.Structure):
    """mtrun_checkpoint_options"""

    _fields_ = [
        ("struct_size", c_size_t), ("folder", c_char_p), ("every_steps", c_int64), ("every_epochs", c_int64),
        ("every_seconds", c_double), ("keep", c_int64), ("resume", c_char_p), ("force", c_int)]


class FitResult(ctypes.Structure):
    """mtrun_fit_result"""

    _fields_ = [
        ("stopped", c_int), ("saved", c_int), ("epochs", c_int64), ("total_step", c_int64), ("input_wait", c_double),
        ("seconds", c_double), ("stopped_early", c_int), ("not_finite", c_int)]


class LoopOptions(ctypes.Structure):
    """mtrun_loop_options"""

    _fields_ = [
        ("struct_size", c_size_t), ("epochs", c_int64), ("no_shuffle", c_int), ("drop_remainder", c_int),
        ("validation", c_void_p), ("progress", ProgressCallback), ("progress_user", c_void_p),
        ("more_epochs", c_int64), ("steps_per_epoch", c_int64), ("shuffle_window", c_int64),
        ("checkpoint", ctypes.POINTER(CheckpointOptions)), ("history_json", c_char_p), ("history_csv", c_char_p),
        ("monitor", c_char_p), ("early_patience", c_int64), ("early_min_delta", c_double),
        ("plateau_patience", c_int64), ("plateau_factor", c_double), ("plateau_min_rate", c_double),
        ("allow_nan", c_int), ("stop", StopCallback), ("stop_user", c_void_p), ("note", LineCallback),
        ("note_user", c_void_p), ("result", ctypes.POINTER(FitResult)), ("restore_best", c_int),
        ("rate_scale", c_double), ("epoch_file", c_char_p), ("in_flight", c_int), ("early_monitor", c_char_p),
        ("plateau_monitor", c_char_p), ("checkpoint_monitor", c_char_p), ("early_baseline", ctypes.POINTER(c_double)),
        ("early_start_epoch", c_int64), ("plateau_min_delta", ctypes.POINTER(c_double)), ("plateau_cooldown", c_int64),
        ("epoch_best_only", c_int), ("epoch_weights_only", c_int), ("learning_rate", c_double),
        ("validation_freq", c_int64), ("validation_steps", c_int64), ("initial_epoch", c_int64),
        ("validation_split", c_double), ("validation_last", c_int), ("epoch_begin", EpochCallback)]


class Node(ctypes.Structure):
    """mtrun_node"""

    _fields_ = [("name", c_char_p), ("kind", c_char_p), ("inputs", c_int32), ("input_names", ctypes.POINTER(c_char_p))]


NodeCallback = ctypes.CFUNCTYPE(None, c_void_p, ctypes.POINTER(Node))


class TraceOptions(ctypes.Structure):
    """mtrun_trace_options"""

    _fields_ = [("struct_size", c_size_t), ("first", c_int64), ("last", c_int64), ("profile", c_int),
                ("peak_flops", c_double), ("peak_bandwidth", c_double)]


class Profile(ctypes.Structure):
    """mtrun_profile"""

    _fields_ = [("steps", c_int64), ("samples", c_int64), ("threads", c_int32), ("entries", c_int32),
                ("step_us", c_double), ("between_us", c_double), ("idle_us", c_double)]


class ProfileEntry(ctypes.Structure):
    """mtrun_profile_entry"""

    _fields_ = [("name", c_char_p), ("kind", c_char_p), ("layer", c_char_p), ("compute_us", c_double),
                ("transfer_us", c_double), ("wait_us", c_double), ("flops", c_double), ("bytes", c_double)]


class Timing(ctypes.Structure):
    """mtrun_timing"""

    _fields_ = [
        ("median_us", c_double), ("min_us", c_double), ("mean_us", c_double), ("steps", c_int64),
        ("first_step_us", c_double), ("queued_us", c_double), ("resident_us", c_double),
        ("resident_queued_us", c_double), ("floor_us", c_double)]


Options_ = TypeVar("Options_", bound=ctypes.Structure)


def sized(kind: type[Options_], **values: Any) -> Options_:
    """Options that are zero but for their size and `values`. DataError where a value does not fit its field."""
    for name, of, *_ in kind._fields_:
        if name in values and f"{name}_size" not in values:
            fits(name, of, values[name])
    options = kind(**values)
    options.struct_size = ctypes.sizeof(kind)
    return options
