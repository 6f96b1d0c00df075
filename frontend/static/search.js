// Suggestions below the search field while somebody types: a combobox with a list, as in the ARIA Authoring
// Practices. The arrow keys choose a suggestion, Enter opens its page, Escape closes the list; Enter without
// a choice sends the form, as it does without this script. A <datalist> could only fill the field, filters by
// rules of each browser's own, and has no room to say what a choice shows.
import { BASE, counted, node } from "./page.js";

const WAIT_MS = 150;
const ANSWER_WITHIN_MS = 5000;

const field = document.querySelector("#search");
const list = node("ul", { id: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: "" });
const status = node("span", { class: "hidden", role: "status" });
let chosen = -1;
let timer = 0;
let asking = null;

function show(suggestions) {
  list.replaceChildren(...suggestions.map(({ label, address, shows }, place) => {
    const option = node("li", { id: `suggestion-${place}`, role: "option", "aria-selected": "false" }, label, " ");
    option.append(node("span", {}, shows));
    option.dataset.address = BASE + address;
    return option;
  }));
  choose(-1);
  list.hidden = !suggestions.length;
  field.setAttribute("aria-expanded", String(!list.hidden));
}

function close() {
  clearTimeout(timer);
  asking?.abort();
  status.textContent = "";
  show([]);
}

function choose(place) {
  list.children[chosen]?.setAttribute("aria-selected", "false");
  chosen = place;
  const option = list.children[chosen];
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

async function ask() {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const overdue = setTimeout(() => asking.abort(), ANSWER_WITHIN_MS);
  try {
    const answer = await fetch(`${BASE}/search/suggestions.json?${new URLSearchParams({ q: field.value })}`, { signal });
    const found = answer.ok ? (await answer.json()).suggestions : [];
    if (signal.aborted) return;
    show(found);
    status.textContent = found.length ? counted(found.length, "suggestion") : "";
  } catch {
    if (!signal.aborted) close(); // there is no answer: the form still works
  } finally {
    clearTimeout(overdue);
  }
}

function typed() {
  clearTimeout(timer);
  choose(-1); // what was chosen is not for this text
  if (field.value.trim()) timer = setTimeout(ask, WAIT_MS);
  else close();
}

// One step through the list; before the first and behind the last suggestion, none is chosen.
function step(by) {
  const places = list.children.length + 1;
  choose(((chosen + 1 + by + places) % places) - 1);
}

function pressed(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const isOpen = !list.hidden;
  if (event.key === "ArrowDown" && !isOpen && field.value.trim()) ask();
  else if (event.key === "ArrowDown" && isOpen) step(1);
  else if (event.key === "ArrowUp" && isOpen) step(-1);
  else if (event.key === "Enter" && list.children[chosen]) location.assign(list.children[chosen].dataset.address);
  else if (event.key === "Escape" && isOpen) close();
  else return;
  event.preventDefault();
}

for (const [name, value] of Object.entries({
  role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off",
})) field.setAttribute(name, value);
field.form.append(list, status);
field.addEventListener("input", typed);
field.addEventListener("keydown", pressed);
field.addEventListener("blur", close);
field.form.addEventListener("submit", close);
list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) location.assign(option.dataset.address);
});
addEventListener("pageshow", close); // a page that comes back from the browser's memory
