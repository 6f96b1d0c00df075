// Sends a file in parts, however long it is, and has it checked; then shows below the form how far the ledger is with it, and what is in
// it, as the page of the file does. A part without an answer is sent again.
import { BASE, counted, node } from "./page.js";

const MOST_ATTEMPTS = 120; // ten minutes, while the file of somebody else is added
const LONGEST_WAIT_S = 30;
const SEND_AGAIN = new Set([408, 429, 502, 503, 504]);

const [form, progress, bar, counts, said, stop, result] =
  ["upload", "progress", "bar", "counts", "said", "stop", "result"].map((id) => document.getElementById(id));

class Problem extends Error {}

const token = () => form.elements.TOKEN?.value.trim() ?? "";
const size = (bytes) => (bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / 2 ** 20).toFixed(1)} MB`);

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

// --- sending -------------------------------------------------------------------------------------

function posted(parameters, options) {
  const headers = { "Content-Type": "application/octet-stream" };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  return fetch(`${BASE}/upload.json?${new URLSearchParams(parameters)}`, { method: "POST", headers, ...options });
}

// The answer to a post, however often that has to be sent.
async function post(parameters, body, signal) {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await posted(parameters, { body, signal }).catch((error) => {
      if (!(error instanceof TypeError)) throw error; // which is what a broken connection is
    });
    if (answer?.ok) return answer.json();
    const problem = (await answer?.json().catch(() => null)) ?? {};
    const detail = problem.detail ?? "The pages do not answer.";
    if ((answer && !SEND_AGAIN.has(answer.status)) || attempt === MOST_ATTEMPTS) throw new Problem(detail);
    const wait = Number(answer?.headers.get("Retry-After")) || Math.min(LONGEST_WAIT_S, 2 ** (attempt - 1));
    said.textContent = `${detail} Trying again in ${counted(wait, "second")}.`;
    await pause(wait, signal);
    said.textContent = "";
  }
}

async function read(file, start, end) {
  try {
    return await file.slice(start, end).arrayBuffer();
  } catch {
    throw new Problem("The file cannot be read, or was changed. Choose it again.");
  }
}

// Sends a file, has it checked, and returns its id.
async function send(file, signal) {
  if (!file.size) throw new Problem("It is empty; download it again.");
  const { IMPORT_ID } = await post({ NAME: file.name, SIZE: file.size }, null, signal);
  signal.addEventListener("abort", () => posted({ IMPORT_ID, remove: "yes" }).catch(() => {}));
  for (let start = 0; start < file.size; start += Number(form.dataset.part)) {
    const part = await read(file, start, start + Number(form.dataset.part));
    await post({ IMPORT_ID, OFFSET: start }, part, signal);
    bar.value = Math.min(1, (start + part.byteLength) / file.size);
    counts.textContent = `${size(start + part.byteLength)} of ${size(file.size)}`;
  }
  await post({ IMPORT_ID }, null, signal);
  return IMPORT_ID;
}

// --- showing -------------------------------------------------------------------------------------

// The page at an address, when there is an answer.
async function fetched(address) {
  const note = node("p", { class: "error", role: "status" });
  for (let wait = 1; ; wait = Math.min(LONGEST_WAIT_S, 2 * wait)) {
    const answer = await fetch(address).catch(() => null);
    if (answer && !SEND_AGAIN.has(answer.status)) return answer;
    result.append(note);
    note.textContent = "The ledger does not answer. Trying again.";
    await pause(wait);
  }
}

// Shows the state of the file in a page, and then what becomes of it.
async function show(answer) {
  for (;;) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const state = page.getElementById("outcome");
    if (!state) return location.assign(answer.url);
    if (page.title) document.title = page.title;
    result.replaceChildren(document.adoptNode(state));
    if (token()) result.querySelector(".field:not(.wrong) > [name=TOKEN]")?.parentNode.remove();
    if (!state.dataset.refresh) return state.querySelector("h2").focus();
    await pause(Number(state.dataset.everyS));
    answer = await fetched(state.dataset.refresh);
    if (!state.isConnected) return; // as another file was chosen
  }
}

function conclude(name, title, kind, text) {
  const heading = node("h2", { tabindex: "-1" }, `${name}: ${title}`);
  result.replaceChildren(heading, node("div", { class: `notice ${kind}` }, node("p", {}, text)));
  heading.focus();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = form.elements.file.files[0];
  const stopping = new AbortController();
  stop.onclick = () => stopping.abort();
  event.submitter.disabled = true;
  result.replaceChildren();
  progress.hidden = false;
  bar.value = 0;
  counts.textContent = said.textContent = "";
  progress.querySelector("h2").focus();
  onbeforeunload = (event) => event.preventDefault();
  try {
    const id = await send(file, stopping.signal).finally(() => {
      onbeforeunload = null;
      progress.hidden = true;
    });
    history.replaceState(null, "", `${BASE}/upload/${id}`); // which a reload shows
    await show(await fetched(location));
  } catch (error) {
    if (stopping.signal.aborted) conclude(file.name, "stopped", "warn", "Nothing was added.");
    else conclude(file.name, "not added", "bad", error instanceof Problem ? error.message : `This page failed: ${error}`);
  } finally {
    event.submitter.disabled = false;
  }
});

// Forms about the file are answered here, so that the token has to be typed once.
result.addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = new FormData(event.target, event.submitter);
  if (token() && !values.get("TOKEN")) values.set("TOKEN", token());
  const address = event.target.getAttribute("action"); // its property is the button with that name
  event.submitter.disabled = true;
  try {
    await show(await fetch(address, { method: "POST", body: new URLSearchParams(values) }));
  } catch {
    event.submitter.disabled = false;
    event.target.querySelector("[role=alert]")?.remove();
    event.target.append(node("p", { class: "error", role: "alert" }, "The pages do not answer. Send it again."));
  }
});
