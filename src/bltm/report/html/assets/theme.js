"use strict";
// Before anything is drawn: the theme that the reader chose last.
{
  let theme = null;
  try {
    theme = localStorage.getItem("bltm-theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
