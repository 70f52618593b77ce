// Drawings to flip through: one is shown, the control chooses.
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
