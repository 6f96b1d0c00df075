// Sends a file in slices: first to be checked as a whole, then, when the visitor has seen what is in it, to be added. It is unpacked
// on the way, each time anew, never in memory as a whole. A slice without an answer is sent again with its Idempotency-Key, made of the
// content of the table and the place of the slice; so a file can be chosen again after a break, and nothing is added twice. A slice that
// leaves open how days are written is checked again as the others say; if all do, the visitor is asked.
import { BASE, counted, node, number } from "./page.js";
import { slicesOf } from "./slices.js";
import { Problem, tablesOf } from "./unpacking.js";

const MOST_ATTEMPTS = 30;
const LONGEST_WAIT_S = 30;
const MOST_ROWS_SHOWN = 500;
const MOST_CONFLICTS_SHOWN = 20;
const SHOWN_TITLES = 3;
const MOST_BAD = 0.01; // of the rows
const SEND_AGAIN = new Set([408, 429, 502, 503, 504]);
const COUNTS = ["good", "bad", "bad_cancelled", "bad_not_arrived", "added", "before", "there", "conflicts"];
const FIRST = { "day-first": "Day first", "month-first": "Month first" };

const [form, progress, phase, bar, counts, said, stop, result] =
  ["upload", "progress", "phase", "bar", "counts", "said", "stop", "result"].map((id) => document.getElementById(id));

// --- words ---------------------------------------------------------------------------------------

function duration(seconds) {
  if (seconds < 90) return counted(Math.max(1, Math.round(seconds)), "second", "seconds");
  return counted(Math.round(seconds / 60), "minute", "minutes");
}

// --- reading and sending -------------------------------------------------------------------------

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

async function post(job, table, slice, action) {
  const headers = { "Content-Type": "application/octet-stream" };
  const dates = table.dates ?? "";
  if (action === "add") headers["Idempotency-Key"] = `slice-${job.onError}-${dates}-${table.fingerprint}-${slice.line}-${slice.lines}`;
  if (job.token) headers.Authorization = `Bearer ${job.token}`;
  const address = `${BASE}/upload.json?action=${action}&on_error=${job.onError}${dates && `&dates=${dates}`}`;
  return fetch(address, { method: "POST", body: slice.bytes, headers, signal: job.stopping.signal });
}

function placeOf(table, slice, line) {
  return (table.name && `${table.name}: `) + (line ? `Line ${number(slice.cutter.lineOf(slice, line))}: ` : "");
}

// The outcome of a slice, however often it has to be sent; {doubt} if its days may be read in two ways.
async function send(job, table, slice, action) {
  for (let attempt = 1; ; attempt += 1) {
    let answer = null;
    try {
      answer = await post(job, table, slice, action);
      if (answer.ok) return await answer.json();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // which is what a broken connection is
      answer = null;
    }
    const problem = answer ? await answer.json().catch(() => ({})) : {};
    if (problem.meanings) return { doubt: problem };
    const detail = problem.detail ?? "The pages do not answer.";
    if ((answer && !SEND_AGAIN.has(answer.status)) || attempt === MOST_ATTEMPTS) {
      throw new Problem(placeOf(table, slice, problem.line) + detail);
    }
    const wait = Number(answer?.headers.get("Retry-After")) || Math.min(LONGEST_WAIT_S, 2 ** (attempt - 1));
    said.textContent = `${detail} The upload continues by itself in ${duration(wait)}.`;
    await pause(wait, job.stopping.signal);
    said.textContent = "";
  }
}

function addUp(found, table, slice, outcome) {
  for (const name of COUNTS) found[name] += outcome[name];
  found.conflicting.push(...outcome.conflicting.slice(0, MOST_CONFLICTS_SHOWN - found.conflicting.length));
  found.thereAs ??= outcome.there_as;
  if (outcome.added) {
    found.first ??= outcome.first;
    found.last = outcome.last;
    found.receipts = [found.receipts?.[0] ?? outcome.receipts[0], outcome.receipts[1]];
  }
  for (const row of outcome.bad_rows) {
    const place = { table: table.name, at: table.at, row: slice.cutter.lineOf(slice, row.row) };
    if (found.rows.length < MOST_ROWS_SHOWN) found.rows.push({ ...row, ...place });
  }
  if (outcome.good || outcome.bad) understand(found, table, outcome.understood);
}

// What the whole file was taken for, slice by slice.
function understand(found, table, { kind, dates, dates_written, emptied, repeated_headers, not_used, ...rest }) {
  if (dates) table.orders.add(dates);
  found.understood ??= { kind, dates, dates_written, emptied: {}, repeated_headers: 0, not_used: [], ...rest };
  const all = found.understood;
  if (kind !== all.kind) {
    throw new Problem(`${table.name || "A part of the file"} is of another kind (${kind}) than what is before it (${all.kind}). Add it alone.`);
  }
  if (dates in FIRST) Object.assign(all, { dates, dates_written });
  all.repeated_headers += repeated_headers;
  all.not_used = [...new Set([...all.not_used, ...not_used])];
  for (const [name, count] of Object.entries(emptied)) all.emptied[name] = (all.emptied[name] ?? 0) + count;
}

// Decides how the days of a table are written, from what its slices say.
function decide(table) {
  if (table.orders.size > 1) {
    throw new Problem(`${table.name && `${table.name}: `}Some days are written in one order, others in another. Write all as YYYY-MM-DD.`);
  }
  table.dates ??= [...table.orders].find((order) => order in FIRST);
}

// Sends the slices of all tables one after the other, and adds up what becomes of them.
async function sendAll(job, action) {
  const began = performance.now();
  const found = (job.found = { rows: [], first: null, last: null, thereAs: null, conflicting: [] });
  for (const name of COUNTS) found[name] = 0;
  const size = job.tables.reduce((sum, table) => sum + table.size, 0);
  let read = 0;
  show(action === "check" ? "Checking" : "Adding", 0);
  const sendSlices = async (table, isWanted) => {
    let cutter = null;
    for await (const slice of slicesOf(table, (count) => (read += count), Number(form.dataset.most))) {
      job.stopping.signal.throwIfAborted();
      cutter = slice.cutter;
      if (!isWanted(slice) || (!slice.bytes.length && job.tables.length > 1)) continue;
      const outcome = await send(job, table, slice, action);
      if (job.isAdding && (outcome.doubt || (job.onError === "reject" && outcome.bad))) {
        throw new Problem("The file was changed after it was checked: a row that was a flight no longer is.");
      }
      if (outcome.doubt) {
        table.doubt ??= outcome.doubt;
        table.doubtful.add(slice.line);
        continue;
      }
      addUp(found, table, slice, outcome);
      report(job, began, size ? Math.min(1, read / size) : 1);
    }
    if (!job.isAdding) table.fingerprint = cutter.fingerprint;
  };
  for (const table of job.tables) {
    if (action === "add") {
      await sendSlices(table, () => true);
      continue;
    }
    Object.assign(table, { at: job.tables.indexOf(table), orders: new Set(), doubtful: new Set(), doubt: null });
    await sendSlices(table, () => true);
    decide(table);
    if (table.doubt && table.dates) {
      read -= table.size;
      await sendSlices(table, (slice) => table.doubtful.has(slice.line));
    }
  }
}

function report(job, began, share) {
  const { good, bad } = job.found;
  const seconds = (performance.now() - began) / 1000;
  const all = job.isAdding ? ` of ${counted(job.rows, "row", "rows")}` : ` ${good + bad === 1 ? "row" : "rows"}`;
  const done = job.isAdding && job.rows ? (good + bad) / job.rows : share;
  bar.value = done;
  counts.textContent =
    `${number(good + bad)}${all}, ${number(Math.round((good + bad) / seconds))} a second` +
    (done < 1 ? `, about ${duration((seconds * (1 - done)) / done)} left` : "");
}

// --- showing -------------------------------------------------------------------------------------

function show(what, share) {
  phase.textContent = what;
  counts.textContent = "";
  said.textContent = "";
  bar.value = share;
}

function receipts(found) {
  const links = [node("a", { href: BASE + found.receipts[0] }, found.added === 1 ? "its receipt" : "the first")];
  if (found.added > 1) links.push(", ", node("a", { href: BASE + found.receipts[1] }, "the last"));
  return node("p", {}, "Receipts: ", ...links);
}

function accepted(found) {
  let ids = found.added === 1 ? `, as transaction ${found.first}.` : `, as transactions ${found.first} to ${found.last}.`;
  if (found.first === null) ids = found.added === 1 ? ". It gets its number when mined." : ". They get their numbers when mined.";
  const out = found.bad ? ` ${counted(found.bad, "row was", "rows were")} left out.` : "";
  const again = found.before ? ` ${found.before === found.added ? "All" : number(found.before)} of them were accepted when this file was first sent; sending it again within a day adds nothing.` : "";
  return node("p", {}, `${counted(found.added, "flight was", "flights were")} accepted${ids}${out}${again}`);
}

function tableOf(caption, titles, rows) {
  const head = node("tr", {}, ...titles.map(([title, kind]) => node("th", { scope: "col", class: kind }, title)));
  const made = node("table", {}, node("caption", {}, caption), node("thead", {}, head), node("tbody", {}, ...rows));
  return node("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, made);
}

const code = (value) => node("code", {}, String(value ?? ""));

function badRows({ rows, bad }) {
  const isNamed = rows.some((row) => row.table);
  const titles = [["Line", "n"], ["What is wrong", ""], ["Field", ""], ["Value", ""]];
  const sorted = [...rows].sort((a, b) => a.at - b.at || a.row - b.row); // slices in doubt were checked last
  const body = sorted.map((row) =>
    node("tr", {}, ...(isNamed ? [node("td", {}, row.table)] : []), node("td", { class: "n" }, number(row.row)), node("td", { class: "value" }, row.detail), node("td", { class: "nowrap" }, code(row.field)), node("td", { class: "value" }, code(row.value))));
  const caption = `Rows that are not flights${bad > rows.length ? `, ${number(rows.length)} of ${number(bad)}` : ""}`;
  return tableOf(caption, isNamed ? [["Table", ""], ...titles] : titles, body);
}

// How the file was read, as `understanding.html` says it of one that came in one piece.
function understoodAs({ kind, source, dates_written: written, emptied, repeated_headers: headers, not_used: others, fields }) {
  const was = (count) => (count === 1 ? "was" : "were");
  const notes = Object.entries(emptied).map(([name, count]) => `${counted(count, "cell")} of ${name} ${was(count)} emptied, because what stood there means nothing.`);
  if (written) notes.unshift(`Days are written ${written}.`);
  if (headers) notes.push(`${counted(headers, "line")} ${was(headers)} left out, which ${headers === 1 ? "repeats" : "repeat"} the header.`);
  const more = others.length > SHOWN_TITLES ? [`${number(others.length - SHOWN_TITLES)} more`] : [];
  if (others.length) notes.push(`Not used: ${[...others.slice(0, SHOWN_TITLES), ...more].join(", ")}.`);
  const rows = fields.map(({ name, origin, values }) =>
    node("tr", {}, node("th", { scope: "row", class: "nowrap" }, code(name)), node("td", { class: "value" }, origin), ...values.map((value) => node("td", { class: "nowrap" }, String(value ?? "")))));
  const titles = [["Field", ""], ["In the file", ""], ...fields[0].values.map((_, at) => [`Row ${at + 1}`, ""])];
  return [
    node("p", {}, "The file was taken for: ", node("strong", {}, kind), ` (${source.replaceAll("`", "")}). ${notes.join(" ")}`),
    tableOf("What its columns were understood as", titles, rows),
  ];
}

// title, kind: of the notice. texts: paragraphs.
function conclude(job, title, kind, ...texts) {
  const heading = node("h2", { id: "result-title", tabindex: "-1" }, `${job.file.name}: ${title}`);
  result.replaceChildren(heading, node("div", { class: `notice ${kind}` }, ...texts));
  if (job.found?.rows.length) result.append(badRows(job.found));
  if (job.action === "check" && job.found?.understood && kind !== "bad") result.append(...understoodAs(job.found.understood));
  result.hidden = false;
  heading.focus();
}

// Who leaves out rows should know what that does to the shares.
function unlucky({ bad_cancelled: cancelled, bad_not_arrived: others }) {
  if (!cancelled && !others) return [];
  const those = `${counted(cancelled, "cancelled flight", "cancelled flights")} and ${number(others)} without an arrival`;
  return [node("p", {}, `Among these rows are ${those}; if they are left out, more flights look punctual.`)];
}

function alreadyThere(found) {
  if (!found.there) return [];
  const those = found.there === 1 && found.good === 1 ? "It is" : `${number(found.there)} of them ${found.there === 1 ? "is" : "are"}`;
  const link = node("a", { href: `${BASE}/transactions/${found.thereAs}` }, `transaction ${found.thereAs}`);
  const place = found.thereAs === null ? [] : [`, ${found.there === 1 ? "" : "the first "}as `, link, ","];
  return [node("p", {}, `${those} in the ledger already`, ...place, ` and ${found.there === 1 ? "is" : "are"} left out.`)];
}

function contradicting(found) {
  if (!found.conflicts) return [];
  const said = (value) => value ?? "empty";
  const items = found.conflicting.map(({ flight, stored, fields, TRANSACTION_ID: id, BLOCK_HEIGHT: height }) => {
    const pairs = fields.map((name) => `${name} ${said(flight[name])}, stored ${said(stored[name])}`).join("; ");
    const block = height === null ? [] : [" in ", node("a", { href: `${BASE}/blocks/${height}` }, `block ${number(height)}`)];
    const link = id === null ? [] : [" (", node("a", { href: `${BASE}/transactions/${id}` }, `transaction ${id}`), ...block, ")"];
    return node("li", {}, `flight ${flight.OP_CARRIER_FL_NUM} on ${flight.FL_DATE}: ${pairs}`, ...link);
  });
  const those = `${counted(found.conflicts, "flight contradicts", "flights contradict")} what the ledger says, and ${found.conflicts === 1 ? "is" : "are"} left out:`;
  return [node("p", {}, those), node("ul", {}, ...items)];
}

function newFlights({ good, there, conflicts }) {
  return good - there - conflicts;
}

// A form that adds the flights in the file, as in outcome.html.
function offerToAdd(job) {
  const { good, bad } = job.found;
  const text = `${bad ? `Leave ${counted(bad, "row", "rows")} out and add ` : "Add "}${counted(newFlights(job.found), "flight", "flights")}`;
  const asked = node("form", { class: "adding" }, node("p", { class: "paging" }, node("button", {}, text)));
  const rows = good + bad;
  if (bad > MOST_BAD * rows) {
    const words = ` Leave out ${number(bad)} of ${number(rows)} rows (${((100 * bad) / rows).toFixed(1)}\u00a0%), although the others may be right by chance`;
    asked.prepend(node("label", { class: "choice" }, node("input", { type: "checkbox", required: "" }), words));
  }
  asked.addEventListener("submit", (event) => {
    event.preventDefault();
    work({ ...job, action: "add", token: token(), onError: bad ? "skip" : "reject", stopping: new AbortController() });
  });
  result.querySelector(".notice").after(asked);
}

// Asks how days are written that may be read in two ways.
function ask(job, doubtful) {
  const { day, meanings } = doubtful[0].doubt;
  const choices = Object.entries(meanings).map(([order, meaning]) =>
    node("label", { class: "choice" }, node("input", { type: "radio", name: "dates", value: order, required: "" }), ` ${FIRST[order]}: ${meaning}`));
  const legend = node("legend", {}, `Which day is ${day}?`);
  const asked = node("form", { class: "adding" }, node("fieldset", {}, legend, ...choices), node("button", {}, "Check the file"));
  asked.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const table of doubtful) table.dates = asked.elements.dates.value;
    work({ ...job, stopping: new AbortController() });
  });
  job.found = null;
  conclude(job, "a question before anything is added", "warn", node("p", {}, "No row of the file says whether the day or the month comes first. Nothing was added."));
  result.append(asked);
}

function concludeWhole(job) {
  const { found } = job;
  const doubtful = job.tables.filter((table) => table.doubt && !table.dates);
  if (doubtful.length) return ask(job, doubtful);
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
    const texts = [node("p", {}, sums + (isCheck ? "" : " Nothing was added.") + onward), ...unlucky(found), ...alreadyThere(found), ...contradicting(found)];
    conclude(job, isCheck ? "checked, nothing was added" : "nothing was added", found.there || found.conflicts ? "warn" : kind, ...texts);
    if (isCheck && newFlights(found)) offerToAdd(job);
  }
}

function concludeBroken(job, error) {
  const isStopped = job.stopping.signal.aborted;
  const texts = isStopped ? [] : [node("p", {}, error instanceof Problem ? error.message : `This page failed: ${error}`)];
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
  job.isAdding = job.action === "add";
  if (job.isAdding) job.rows = job.found.good + job.found.bad;
  job.tables ??= await tablesOf(job.file);
  return sendAll(job, job.action);
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

// The token as it is typed now: who only checks a file needs none.
function token() {
  return form.elements.TOKEN?.value.trim() ?? "";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  work({
    file: form.elements.file.files[0],
    action: "check",
    onError: "skip",
    token: token(),
    stopping: new AbortController(),
  });
});
