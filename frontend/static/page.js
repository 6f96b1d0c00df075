// Words and elements that several scripts use. The words are those of the server: see frontend/filters.py.

const UNITS = [["year", 31557600], ["month", 2630016], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

// What comes before the paths of the pages: "" unless they stand below a path of another server.
export const BASE = new URL("..", import.meta.url).pathname.slice(0, -1);

export const number = (value) => value.toLocaleString("en-US");

// With one decimal place, as the server writes it: a tie goes to the even one, and there is no -0.0.
export function decimal(value) {
  const isTie = Math.abs(4 * value) % 2 === 1;
  const rounded = Number((isTie ? (2 * Math.round(5 * value)) / 10 : value).toFixed(1)) + 0;
  return rounded.toLocaleString("en-US", { minimumFractionDigits: 1 }).replace("-", "\u2212");
}

export const counted = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

// A duration, in the largest unit that fits.
export function inWords(seconds) {
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) || ["second", 1];
  return counted(Math.floor(seconds / length), unit);
}

export function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
