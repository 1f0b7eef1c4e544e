const root = document.documentElement;
root.classList.add("scripted");

/* Definitions and reasons, on hover, focus and tap. Without this script they are plain links. */

const tip = document.getElementById("tip");
const touch = matchMedia("(hover: none)");
let anchor = null;
let timer = 0;

function show(element) {
  const source = document.getElementById(element.dataset.tip);
  if (!source) return;
  anchor = element;
  tip.replaceChildren(...[...source.childNodes].map((node) => node.cloneNode(true)));
  tip.hidden = false;
  place();
}

function place() {
  const at = anchor.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const room = root.clientWidth - size.width - 8;
  tip.style.left = `${Math.max(8, Math.min(at.left, room))}px`;
  const below = at.bottom + 6;
  const fits = below + size.height < innerHeight - 8;
  tip.style.top = `${fits ? below : Math.max(8, at.top - size.height - 6)}px`;
}

function hide() {
  clearTimeout(timer);
  tip.hidden = true;
  anchor = null;
}

const termOf = (event) => event.target.closest?.("[data-tip]");

document.addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch") return;
  if (tip.contains(event.target)) {
    clearTimeout(timer);
    return;
  }
  const element = termOf(event);
  if (element === anchor && element) {
    clearTimeout(timer);
    return;
  }
  clearTimeout(timer);
  // A number waits a little, lest the eye that follows the pointer be disturbed.
  if (element) timer = setTimeout(show, element.matches("a") ? 80 : 350, element);
  else if (anchor && anchor !== document.activeElement) timer = setTimeout(hide, 200);
});
document.addEventListener("focusin", (event) => {
  const element = termOf(event);
  if (element?.matches(":focus-visible")) show(element);
  else if (!touch.matches) hide();
});
document.addEventListener("click", (event) => {
  if (!touch.matches || tip.contains(event.target)) return;
  const element = termOf(event);
  if (!element || element === anchor) {
    if (element) event.preventDefault();
    hide();
    return;
  }
  event.preventDefault();
  show(element);
});
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
addEventListener("scroll", () => anchor && place(), { capture: true, passive: true });
addEventListener("resize", hide);

/* Charts. Colours are style variables, so that nothing needs drawing again for dark or print. */

const font = getComputedStyle(document.body).fontFamily;
const axis = {
  labelColor: "var(--quiet)",
  titleColor: "var(--quiet)",
  titleFontWeight: "normal",
  titleFontSize: 12,
  labelFontSize: 12,
  domainColor: "var(--line)",
  tickColor: "var(--line)",
  gridColor: "var(--line)",
  gridOpacity: 0.6,
  titlePadding: 8,
  labelAngle: 0,
  labelOverlap: "greedy",
};

const config = {
  font,
  background: "transparent",
  aria: false,
  view: { stroke: null },
  axis,
  axisY: { domain: false, ticks: false, labelLimit: 200 },
  axisXQuantitative: { grid: false },
  axisXDiscrete: { grid: false },
  axisYDiscrete: { grid: true, gridDash: [1, 3] },
  text: { font, fontSize: 13 },
};

for (const figure of document.querySelectorAll("figure.chart")) {
  const plot = figure.querySelector(".plot");
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const options = {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    ast: true,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
    config,
  };
  window.vegaEmbed(plot, spec, options).catch((error) => {
    console.error(error);
    plot.textContent = plot.getAttribute("aria-label");
  });
}
