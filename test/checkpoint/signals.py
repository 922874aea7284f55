# SPDX-License-Identifier: Apache-2.0
"""signals.py SIGNAL COMMAND...: sends the signal after the first lines of output; prints exit code and the last line of
errors."""
import shlex
import signal
import subprocess
import sys
import threading

LIMIT = 60  # seconds after which a command hangs

number = getattr(signal, "SIG" + sys.argv[1])
# Whoever runs the tests may have it ignored, which mtrun respects.
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))


def give_up():
    process.kill()
    print(f"hung, more than {LIMIT} s: {shlex.join(sys.argv[2:])}", file=sys.stderr)


timer = threading.Timer(LIMIT, give_up)
timer.start()
for _ in range(3):
    process.stdout.readline()
process.send_signal(number)
_, errors = process.communicate()
timer.cancel()
print(f"exit code {process.returncode}; {errors.splitlines()[-1] if errors else ''}")
