"""Result rows as tables, figures and pages; nothing here trains."""
