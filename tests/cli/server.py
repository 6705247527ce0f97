"""Runs commands of bltm, each in a process of its own that is forked from one that has imported it.

The import of torch and its like takes seconds, the commands of these tests a fraction of one. Reads
one JSON request per line and answers with one JSON line:

``{"args": [...], "cwd": ..., "stdout": ..., "stderr": ..., "kill": ...}`` starts ``bltm args`` and
gives its pid; ``{"wait": pid}`` waits for its end and gives the exit code, negative for a signal.
``kill`` is ``[name, count, moment]``: the process sends itself SIGKILL when the file ``name`` is
put into place for the ``count``-th time, "before" or "after" that happens.
"""

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any


def kill_at(name: str, count: int, moment: str) -> None:
    replace, seen = Path.replace, 0

    def replace_or_die(self: Path, target: Any) -> Path:
        nonlocal seen
        seen += Path(target).name == name
        due = Path(target).name == name and seen == count
        if due and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = replace(self, target)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    Path.replace = replace_or_die  # type: ignore[method-assign, assignment]


def command(request: dict[str, Any]) -> None:
    """Become the command."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(request["cwd"])
    if request["kill"]:
        kill_at(*request["kill"])
    sys.argv = ["bltm", *request["args"]]
    # Warnings of ours are printed as notes; any other would be a fault.
    warnings.simplefilter("error")
    code = 1
    try:
        from bltm.cli import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"code": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            if pid == 0:
                command(request)
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    import bltm.data
    import bltm.methods.registry
    import bltm.runs.fit
    import bltm.runs.noise
    import bltm.runs.predict  # noqa: F401

    serve()
