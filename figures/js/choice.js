// Drawings to flip through: one is shown, the control chooses.
// JupyterLab takes keys as commands unless the focused element itself says that they stay with it.
if (!window.gemmKeys) {
  window.gemmKeys = true;
  const mark = (event) => {
    if (event.target.closest?.(".gl-live, .gl")) event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  };
  window.addEventListener("keydown", mark, true);
}
for (const root of document.querySelectorAll(".gl-choice:not([data-ready])")) {
  root.setAttribute("data-ready", "");
  const input = root.querySelector("input,select");
  const pages = [...root.querySelectorAll(":scope > .gl-page")];
  const shown = root.querySelector("output");
  const show = () => {
    const at = Number(input.value);
    pages.forEach((page, i) => (page.hidden = i !== at));
    if (shown) shown.textContent = pages[at].dataset.label;
  };
  input.addEventListener("input", show);
  show();
}
