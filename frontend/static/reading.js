// Says the values of a chart where the pointer or the focus is, and copies what [data-copy] shows.
import { node } from "./page.js";

for (const plot of document.querySelectorAll("svg.plot")) {
  const marks = [...plot.querySelectorAll("rect, path")].filter((mark) => mark.firstChild);
  const value = node("output", { class: "value" }, "");
  let at = -1;
  const show = (next) => {
    marks[at]?.classList.remove("on");
    at = Math.min(next, marks.length - 1);
    marks[at]?.classList.add("on");
    value.textContent = marks[at]?.textContent.replaceAll("\n", " · ") ?? "";
  };
  if (!marks.length) continue;
  plot.after(value);
  plot.tabIndex = 0;
  plot.addEventListener("pointermove", (event) => show(marks.indexOf(event.target)));
  plot.addEventListener("pointerleave", () => show(-1));
  plot.addEventListener("click", (event) => show(marks.indexOf(event.target))); // the last event of a tap
  plot.addEventListener("focus", () => show(Math.max(at, 0)));
  plot.addEventListener("blur", () => show(-1));
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    show(Math.max(at + step, 0));
    event.preventDefault();
  });
}

for (const shown of document.querySelectorAll("[data-copy]")) {
  const button = node("button", { type: "button", class: "quiet" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(shown.textContent);
    button.textContent = "Copied";
  });
  if (navigator.clipboard) shown.after(button);
}
