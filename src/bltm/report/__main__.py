"""``python -m bltm.report``: bring docs/results.md, its figures and the README up to date."""

from pathlib import Path

from bltm.report.documents import write_results

for written in write_results(Path.cwd()):
    print(written.relative_to(Path.cwd()))
