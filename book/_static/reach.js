// What scrolls sideways can be scrolled by keyboard: it takes the focus while, and only while, it is wider than its place.

const SCROLLS =
  '.gl-scroll, .math-block, .bd-article pre, .bd-article .pst-scrollable-table-container, .cell_output, [style*="overflow-x"]';

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
window.addEventListener("load", soon);
window.addEventListener("resize", soon);
document.addEventListener("toggle", soon, true); // what was folded has a width only now
