// Keeps elements with data-refresh="ADDRESS" data-every-s="N" up to date: fetches the element anew and
// puts it in its place when it says something new, until it comes back without data-refresh. Rests
// while the page is hidden or paused, and asks ever more rarely while there is no answer.
//
// In the paragraph [data-live] stand the button [data-pause] and [data-status], which screen readers
// speak: what the element's data-say says when that changes, and at most one message a minute.
import { inWords } from "./page.js";

const LONGEST_WAIT_S = 60;
const ANSWER_WITHIN_S = 15;
const QUIET_S = 60;

const live = document.querySelector("[data-live]");
const pause = document.querySelector("[data-pause]");
const statusLine = document.querySelector("[data-status]");
let paused = false;
let clockAhead; // milliseconds that the server's clock is ahead of ours; undefined before it is known

const isSettled = () => !document.querySelector("[data-refresh]");

function resting() {
  return paused || document.hidden;
}

// --- waiting ---------------------------------------------------------------------------------------

function wait(seconds) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("wake", done);
      resolve();
    };
    const timer = setTimeout(done, 1000 * seconds);
    addEventListener("wake", done);
  });
}

async function rest(seconds) {
  await wait(Math.min(seconds, LONGEST_WAIT_S));
  while (resting()) await wait(LONGEST_WAIT_S);
}

function wake() {
  if (!resting()) dispatchEvent(new Event("wake"));
}
document.addEventListener("visibilitychange", wake);
addEventListener("online", wake);

// --- speaking --------------------------------------------------------------------------------------

let toSay = "";
let saidAt = -Infinity;
let speaking = 0;

function say(text) {
  toSay = text;
  if (!statusLine || speaking) return;
  speaking = setTimeout(() => {
    speaking = 0;
    saidAt = performance.now();
    statusLine.textContent = toSay;
  }, Math.max(0, saidAt + 1000 * QUIET_S - performance.now()));
}

const note = document.createElement("span"); // what there is to see while there is no answer
note.className = "away";

function answered(failures) {
  note.remove();
  if (failures > 1) say("The ledger answers again");
}

function unanswered(failures) {
  note.textContent = "The ledger does not answer, so this page may show old data. It keeps trying.";
  if (live) live.append(note);
  if (failures === 2) say("The ledger does not answer");
}

// --- refreshing ------------------------------------------------------------------------------------

async function fetched(address) {
  const answer = await fetch(address, {
    headers: { Accept: "text/html" },
    signal: AbortSignal.timeout(1000 * ANSWER_WITHIN_S),
  });
  if (!answer.ok) throw new Error();
  clockAhead = Date.parse(answer.headers.get("Date")) - Date.now();
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return document.adoptNode(page.body.firstElementChild);
}

// How long ago something was is no news: see the clock below.
function news(element) {
  return element.outerHTML.replace(/(<time [^>]*>)[^<]*/g, "$1");
}

// The new element in place of the old one; or the old one, if what somebody has the focus on, or has
// selected, would be lost.
function exchange(element, fresh) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const again = focused && [...fresh.querySelectorAll("a[href]")].find((link) => link.href === focused.href);
  const selection = getSelection();
  const isSelected = !selection.isCollapsed && selection.containsNode(element, true);
  if ((focused && !again) || isSelected) return element;
  const isNew = fresh.dataset.say !== element.dataset.say;
  element.replaceWith(fresh);
  if (again) again.focus({ preventScroll: true });
  if (isNew) say(fresh.dataset.say);
  return fresh;
}

async function keepFresh(element) {
  let failures = 0;
  element.news = news(element); // before the browser translates it
  while (element.dataset.refresh) {
    await rest(element.dataset.everyS * 2 ** failures);
    try {
      const fresh = await fetched(element.dataset.refresh);
      answered(failures);
      failures = 0;
      fresh.news = news(fresh);
      if (!resting() && fresh.news !== element.news) element = exchange(element, fresh);
    } catch {
      failures += 1;
      unanswered(failures);
    }
  }
  if (pause && pause !== document.activeElement) pause.hidden = isSettled();
}

// A page that says that the ledger is away is asked for again, and shown when there is an answer,
// but not a proxy's 429 or 502.
async function comeBack() {
  for (let failures = 0; ; failures += 1) {
    await rest(2 * 1.5 ** failures);
    const answer = await fetch(location.href, { method: "HEAD" }).catch(() => null);
    if (answer?.status < 429) return location.reload();
  }
}

// --- the clock: how long ago things were, in the words of the server ---------------------------------

function age(element) {
  const seconds = (Date.now() + clockAhead - Date.parse(element.dateTime)) / 1000;
  if (seconds <= -1) return `in ${inWords(-seconds)}`;
  if (element.dataset.age === "due") return "any moment";
  return seconds < 1 ? "just now" : `${inWords(seconds)} ago`;
}

function tick() {
  if (resting() || clockAhead === undefined) return;
  for (const element of document.querySelectorAll("time[data-age]")) {
    const text = age(element);
    if (text !== element.age) element.textContent = element.age = text;
  }
}

// ---------------------------------------------------------------------------------------------------

for (const element of document.querySelectorAll("[data-refresh]")) keepFresh(element);
if (document.querySelector("[data-come-back]")) comeBack();
if (live && pause) {
  live.hidden = false;
  pause.hidden = isSettled();
  setInterval(tick, 1000);
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", paused);
    wake();
  });
}
