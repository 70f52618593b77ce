// What scrolls sideways can be scrolled by keyboard: it takes the focus while, and only while, it is wider than its place.

const SCROLLS =
  '.gl-scroll, .math-block, .bd-article pre, .bd-article .pst-scrollable-table-container, .cell_output, [style*="overflow-x"]';

// On a phone no word of a drawing is smaller than this: a drawing whose words would be is wider than the screen, and scrolls.
const LEAST = 10; // CSS pixels
const NARROW = window.matchMedia("(max-width: 767px)");
const legible = () => {
  for (const drawing of document.querySelectorAll(".gl svg[viewBox]")) {
    drawing.dataset.least ??= drawing.style.minWidth;
    drawing.style.minWidth = drawing.dataset.least;
    if (!NARROW.matches) continue;
    const sizes = [...drawing.querySelectorAll("text")].map((words) => parseFloat(getComputedStyle(words).fontSize));
    const wide = (LEAST * drawing.viewBox.baseVal.width) / Math.min(...sizes);
    if (wide > parseFloat(drawing.dataset.least || 0)) drawing.style.minWidth = `${Math.ceil(wide)}px`;
  }
};

const reach = () => {
  const own = [...document.querySelectorAll(SCROLLS)];
  const inside = [...document.querySelectorAll(".gl-explorer")].flatMap((host) => [
    ...(host.shadowRoot?.querySelectorAll(".picture") ?? []),
  ]);
  for (const place of [...own, ...inside]) {
    const wide = place.scrollWidth > place.clientWidth && getComputedStyle(place).overflowX !== "visible";
    if (wide) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
  }
};

let waiting = 0;
const soon = () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(reach);
};
window.addEventListener("load", legible);
NARROW.addEventListener("change", legible);
window.addEventListener("load", soon);
window.addEventListener("resize", soon);
document.addEventListener("toggle", soon, true); // what was folded has a width only now
