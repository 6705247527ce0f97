"""The report of an audit: one HTML file in which a person decides about suspicious labels.

The file is opened from disk and loads nothing: pictures, style and script are inside, and a
Content-Security-Policy forbids everything else. Class names, ids and cells are the user's text;
they come to the page as JSON or through Jinja2's escaping, and the script shows them as text only.
"""

from bltm.report.html.build import build_report, write_report
from bltm.report.html.content import Limits, ReportContent

__all__ = ["Limits", "ReportContent", "build_report", "write_report"]
