// Sends a file in slices, with a progress bar: first to be checked, as a whole, and when the visitor has
// seen what is in it and says so, to be added. A slice that gets no answer is sent again, with the same Idempotency-Key: it comes from the
// content of the whole file and the place of the slice, so that the file can be chosen again after a
// break, too, and nothing is added twice. The file is never in memory as a whole.
import { counted, node, number } from "./page.js";
import { Cutter } from "./slices.js";

const READ_BYTES = 2 ** 20;
const MOST_ATTEMPTS = 30;
const LONGEST_WAIT_S = 30;
const MOST_ROWS_SHOWN = 500;
const MOST_CONFLICTS_SHOWN = 20;
const SEND_AGAIN = new Set([408, 429, 502, 503, 504]);
const KINDS = { csv: "text/csv", ndjson: "application/x-ndjson", jsonl: "application/x-ndjson" };

const [form, progress, phase, bar, counts, said, stop, result] =
  ["upload", "progress", "phase", "bar", "counts", "said", "stop", "result"].map((id) => document.getElementById(id));

class Problem extends Error {}

// --- words ---------------------------------------------------------------------------------------

function duration(seconds) {
  if (seconds < 90) return counted(Math.max(1, Math.round(seconds)), "second", "seconds");
  return counted(Math.round(seconds / 60), "minute", "minutes");
}

// --- reading and sending -------------------------------------------------------------------------

async function bytesOf(blob) {
  try {
    return await blob.arrayBuffer();
  } catch {
    throw new Problem("The file cannot be read any more: it was changed, moved or removed.");
  }
}

async function kindOf(file) {
  const named = KINDS[file.name.split(".").pop().toLowerCase()];
  const start = new TextDecoder().decode(await bytesOf(file.slice(0, 1000))).trimStart();
  return named ?? (start.startsWith("{") ? KINDS.ndjson : KINDS.csv);
}

async function cut(job) {
  const cutter = new Cutter(job.kind === KINDS.csv);
  for (let at = 0; at < job.file.size; at += READ_BYTES) {
    job.stopping.signal.throwIfAborted();
    cutter.feed(new Uint8Array(await bytesOf(job.file.slice(at, at + READ_BYTES))));
    bar.value = Math.min(1, (at + READ_BYTES) / job.file.size);
    counts.textContent = `${counted(cutter.lines, "line", "lines")} so far`;
  }
  cutter.finish();
  if (!cutter.hasHeader) cutter.leaveOutEnd(new TextDecoder().decode(await bytesOf(job.file.slice(-1000))));
  return cutter;
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

async function post(job, slice, action) {
  const header = job.file.slice(0, job.cutter.headerEnd);
  const body = await bytesOf(new Blob([header, job.file.slice(slice.start, slice.end)]));
  const key = `slice-${job.onError}-${job.cutter.fingerprint}-${slice.line}-${slice.lines}`;
  const headers = { "Content-Type": job.kind, "Idempotency-Key": key };
  if (job.token) headers.Authorization = `Bearer ${job.token}`;
  const address = `/upload.json?action=${action}&on_error=${job.onError}`;
  return fetch(address, { method: "POST", body, headers, signal: job.stopping.signal });
}

// The outcome of a slice, however often it has to be sent.
async function send(job, slice, action) {
  for (let attempt = 1; ; attempt += 1) {
    let answer = null;
    try {
      answer = await post(job, slice, action);
      if (answer.ok) return await answer.json();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // which is what a broken connection is
      answer = null;
    }
    const problem = answer ? await answer.json().catch(() => ({})) : {};
    const detail = problem.detail ?? "The pages do not answer.";
    if ((answer && !SEND_AGAIN.has(answer.status)) || attempt === MOST_ATTEMPTS) {
      const line = problem.line ? `Line ${number(job.cutter.lineOf(slice, problem.line))}: ` : "";
      throw new Problem(line + detail);
    }
    const wait = Number(answer?.headers.get("Retry-After")) || Math.min(LONGEST_WAIT_S, 2 ** (attempt - 1));
    said.textContent = `${detail} The upload continues by itself in ${duration(wait)}.`;
    await pause(wait, job.stopping.signal);
    said.textContent = "";
  }
}

// Sends all slices one after the other, and adds up what becomes of them.
async function sendAll(job, action) {
  const { cutter } = job;
  const began = performance.now();
  const found = (job.found = { good: 0, bad: 0, rows: [], added: 0, before: 0, first: null, last: null, there: 0, thereAs: null, conflicts: 0, conflicting: [] });
  const rows = cutter.slices.reduce((sum, slice) => sum + slice.lines, 0); // without the header
  let done = 0;
  show(action === "check" ? "Checking" : "Adding", 0);
  for (const slice of cutter.slices) {
    const outcome = await send(job, slice, action);
    if (job.isAdding && job.onError === "reject" && outcome.bad) {
      throw new Problem("The file was changed after it was checked: a row that was a flight no longer is.");
    }
    found.good += outcome.good;
    found.bad += outcome.bad;
    found.added += outcome.added;
    found.before += outcome.before;
    found.there += outcome.there;
    found.conflicts += outcome.conflicts;
    found.conflicting.push(...outcome.conflicting.slice(0, MOST_CONFLICTS_SHOWN - found.conflicting.length));
    found.thereAs ??= outcome.there_as;
    if (outcome.added) {
      found.first ??= outcome.first;
      found.last = outcome.last;
      found.receipts = [found.receipts?.[0] ?? outcome.receipts[0], outcome.receipts[1]];
    }
    for (const row of outcome.bad_rows) {
      if (found.rows.length < MOST_ROWS_SHOWN) found.rows.push({ ...row, row: cutter.lineOf(slice, row.row) });
    }
    done += slice.lines;
    const rate = done / ((performance.now() - began) / 1000);
    const left = (rows - done) / rate;
    bar.value = rows ? done / rows : 1;
    counts.textContent =
      `${number(done)} of ${counted(rows, "row", "rows")}, ${number(Math.round(rate))} a second` +
      (done < rows ? `, about ${duration(left)} left` : "");
  }
}

// --- showing -------------------------------------------------------------------------------------

function show(what, share) {
  phase.textContent = what;
  counts.textContent = "";
  said.textContent = "";
  bar.value = share;
}

function receipts(found) {
  const links = [node("a", { href: found.receipts[0] }, found.added === 1 ? "its receipt" : "the first")];
  if (found.added > 1) links.push(", ", node("a", { href: found.receipts[1] }, "the last"));
  return node("p", {}, "Receipts: ", ...links);
}

function accepted(found) {
  let ids = found.added === 1 ? `, as transaction ${found.first}.` : `, as transactions ${found.first} to ${found.last}.`;
  if (found.first === null) ids = found.added === 1 ? ". It gets its number when mined." : ". They get their numbers when mined.";
  const out = found.bad ? ` ${counted(found.bad, "row was", "rows were")} left out.` : "";
  const again = found.before ? ` ${found.before === found.added ? "All" : number(found.before)} of them were accepted when this file was first sent; sending it again within a day adds nothing.` : "";
  return node("p", {}, `${counted(found.added, "flight was", "flights were")} accepted${ids}${out}${again}`);
}

function rowsTable({ rows, bad }) {
  const head = node("tr", {}, node("th", { scope: "col", class: "n" }, "Line"), ...["What is wrong", "Field", "Value"].map((title) => node("th", { scope: "col" }, title)));
  const body = rows.map((row) =>
    node("tr", {}, node("td", { class: "n" }, number(row.row)), node("td", {}, row.detail), node("td", { class: "nowrap" }, node("code", {}, row.field)), node("td", { class: "value" }, node("code", {}, String(row.value ?? "")))));
  const caption = `Rows that are not flights${bad > rows.length ? `, ${number(rows.length)} of ${number(bad)}` : ""}`;
  const table = node("table", {}, node("caption", {}, caption), node("thead", {}, head), node("tbody", {}, ...body));
  return node("div", { class: "scroll", role: "region", "aria-label": "Bad rows", tabindex: "0" }, table);
}

// title, kind: of the notice. texts: paragraphs.
function conclude(job, title, kind, ...texts) {
  const heading = node("h2", { id: "result-title", tabindex: "-1" }, `${job.file.name}: ${title}`);
  result.replaceChildren(heading, node("div", { class: `notice ${kind}` }, ...texts));
  if (job.found?.rows.length) result.append(rowsTable(job.found));
  result.hidden = false;
  heading.focus();
}

function alreadyThere(found) {
  if (!found.there) return [];
  const those = found.there === 1 && found.good === 1 ? "It is" : `${number(found.there)} of them ${found.there === 1 ? "is" : "are"}`;
  const link = node("a", { href: `/transactions/${found.thereAs}` }, `transaction ${found.thereAs}`);
  const place = found.thereAs === null ? [] : [`, ${found.there === 1 ? "" : "the first "}as `, link, ","];
  return [node("p", {}, `${those} in the ledger already`, ...place, ` and ${found.there === 1 ? "is" : "are"} left out.`)];
}

function contradicting(found) {
  if (!found.conflicts) return [];
  const said = (value) => value ?? "empty";
  const items = found.conflicting.map(({ flight, stored, fields, TRANSACTION_ID: id }) => {
    const pairs = fields.map((name) => `${name} ${said(flight[name])}, stored ${said(stored[name])}`).join("; ");
    const link = id === null ? [] : [" (", node("a", { href: `/transactions/${id}` }, `transaction ${id}`), ")"];
    return node("li", {}, `flight ${flight.OP_CARRIER_FL_NUM} on ${flight.FL_DATE}: ${pairs}`, ...link);
  });
  const those = `${counted(found.conflicts, "flight contradicts", "flights contradict")} what the ledger says, and ${found.conflicts === 1 ? "is" : "are"} left out:`;
  return [node("p", {}, those), node("ul", {}, ...items)];
}

function newFlights({ good, there, conflicts }) {
  return good - there - conflicts;
}

// A button below what was found in a file, which adds the flights in it.
function offerToAdd(job) {
  const { bad } = job.found;
  const text = `${bad ? `Leave ${counted(bad, "row", "rows")} out and add ` : "Add "}${counted(newFlights(job.found), "flight", "flights")}`;
  const button = node("button", { type: "button" }, text);
  button.addEventListener("click", () => work({ ...job, action: "add", onError: bad ? "skip" : "reject", stopping: new AbortController() }));
  result.querySelector(".notice").after(node("p", { class: "paging" }, button));
}

function concludeWhole(job) {
  const { found } = job;
  const isCheck = job.action === "check";
  if (!found.good && !found.bad) {
    conclude(job, "nothing was added", "good", node("p", {}, "This file has no flights."));
  } else if (found.added) {
    const kind = found.bad || found.conflicts ? "warn" : "good";
    conclude(job, "added", kind, accepted(found), receipts(found), ...alreadyThere(found), ...contradicting(found));
  } else {
    const all = found.good === 1 ? "The row is a flight." : `All ${number(found.good)} rows are flights.`;
    const sums = !found.bad ? all : `${counted(found.good, "row is a flight", "rows are flights")}, ${counted(found.bad, "is", "are")} not.`;
    const onward = found.bad ? ` Correct the file and choose it again${found.good ? ", or leave these rows out" : ""}.` : "";
    const kind = found.bad ? (isCheck ? "warn" : "bad") : "good";
    const texts = [node("p", {}, sums + (isCheck ? "" : " Nothing was added.") + onward), ...alreadyThere(found), ...contradicting(found)];
    conclude(job, isCheck ? "checked, nothing was added" : "nothing was added", found.there || found.conflicts ? "warn" : kind, ...texts);
    if (isCheck && newFlights(found)) offerToAdd(job);
  }
}

function concludeBroken(job, error) {
  const isStopped = job.stopping.signal.aborted;
  const texts = isStopped ? [] : [node("p", {}, error instanceof Problem || error instanceof RangeError ? error.message : `This page failed: ${error}`)];
  if (job.found?.added) {
    const on = "The rest was not added. Choose the same file again to continue where the upload stopped; within a day, nothing is added twice.";
    texts.push(accepted(job.found), receipts(job.found), node("p", {}, on));
  } else if (!job.isAdding) {
    texts.push(node("p", {}, "Nothing was added."));
  } else {
    texts.push(node("p", {}, "The first part may have been added or not. Choose the same file again; within a day, nothing is added twice."));
  }
  conclude(job, isStopped ? "stopped" : "not added", isStopped ? "warn" : "bad", ...texts);
}

// --- the whole -----------------------------------------------------------------------------------

const warn = (event) => event.preventDefault();

async function run(job) {
  if (job.action === "add") {
    job.isAdding = true;
    return sendAll(job, "add");
  }
  job.kind = await kindOf(job.file);
  job.cutter = await cut(job);
  return sendAll(job, "check");
}

async function work(job) {
  const buttons = document.querySelectorAll("form button");
  stop.onclick = () => job.stopping.abort();
  buttons.forEach((button) => (button.disabled = true));
  result.hidden = true;
  progress.hidden = false;
  show(job.action === "add" ? "Adding" : "Reading the file", 0);
  phase.focus();
  window.addEventListener("beforeunload", warn);
  try {
    await run(job);
    concludeWhole(job);
  } catch (error) {
    concludeBroken(job, error);
  } finally {
    window.removeEventListener("beforeunload", warn);
    progress.hidden = true;
    buttons.forEach((button) => (button.disabled = false));
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { elements } = form;
  work({
    file: elements.file.files[0],
    action: "check",
    onError: "skip",
    token: elements.TOKEN?.value.trim() ?? "",
    stopping: new AbortController(),
  });
});
