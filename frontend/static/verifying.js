// Checks in this page what the page shows: fetches its proof, computes all hashes up to the log's checkpoint, and
// compares that with the one that this browser remembers. What it says was computed here, it has computed here.
import { ago, showAlarm } from "./alarm.js";
import { keepAlarm, keepCheckpoint, recalled } from "./memory.js";
import { BASE, counted, decimal, node, number } from "./page.js";
import { blockProved, BrokenOff, canonical, CannotCheck, differences, linesOf, proved, transactionsRoot } from "./proofs.js";
import { signatureOf } from "./signatures.js";
import { base64, extended, hex, Refused, require } from "./trees.js";

const ATTEMPTS = 5; // a block is signed a moment after it is mined
const AGAIN_AFTER_MS = 2000;
const MOST_LEGS_NAMED = 30;

const REASONS = { 0: "the service does not answer", 404: "the service has no signed proof" };

class NoAnswer extends Error {
  constructor(status) {
    super(REASONS[status] ?? `the service answered with status ${status}`);
    this.status = status;
  }
}

async function fetched(address) {
  const answer = await fetch(address, { cache: "no-store" }).catch(() => {
    throw new NoAnswer(0);
  });
  if (!answer.ok) throw new NoAnswer(answer.status);
  return answer;
}

const proofAt = async (address, told) => proved(linesOf((await fetched(address)).body), told);

// --- what is proved, by the kind of page: {found, told: [paragraphs], limits} -----------------------------

const EVERYBODY = "It does not show that the flights are true, nor that the service shows everybody the same log. " +
  "The key and the script that computed this came from the same service. If you do not trust it, use scripts/verify.py " +
  "with a key from somebody else.";

async function transaction(section) {
  const found = await proofAt(section.dataset.proof);
  require(found.kind === "transaction" && found.text === section.dataset.shown, "the proof is about a different transaction than the one that this page shows");
  const { TRANSACTION_ID: id } = found.transaction;
  return {
    found,
    told: [`transaction ${id} is in block ${number(found.height)}, with every value that this page was made from`],
    more: [node("p", {}, "The proof covers these bytes:"), node("pre", {}, found.text)],
  };
}

async function block(section) {
  const { header, hash, height, transactions } = section.dataset;
  const older = Math.max(1, Number(height));
  const proof = await (await fetched(`${BASE}/proofs/consistency?from=${older}&to=${Number(height) + 1}`)).json();
  const found = blockProved(header, proof);
  const isShown = found.hash === hash && document.querySelector("h1 + .lead").textContent === hash;
  require(found.height === Number(height) && isShown, "the hash of this block is not that of its header");
  const told = [`the SHA-256 of the header of block ${number(found.height)} is ${hash}, with the zero bits that the header requires`];
  if (transactions) {
    const { transactions: rows } = (await (await fetched(transactions)).json()).block;
    const { first_transaction: first, transaction_count: count, transactions_root: root } = found.header;
    const isRun = rows.length === count && rows.every((row, at) => row.TRANSACTION_ID === first + at);
    require(isRun && transactionsRoot(rows) === root, "the header of this block commits to other transactions");
    told.push(`its ${counted(count, "transaction")}, fetched once more, are those that the header commits to`);
  }
  return { found, told };
}

const SUMS = "The check that no flight is left out relies on the sums in the blocks. It does not show that these are the sums of their flights; " +
  "the proof of the chain shows this. ";

async function answer(section) {
  const bar = section.querySelector("progress");
  const links = [...section.querySelectorAll("[data-proof]")];
  const told = [];
  let found; // all are of the same blocks: so the checkpoint of the last one holds for all
  for (const [at, link] of links.entries()) {
    const root = found?.root;
    found = await proofAt(link.dataset.proof, (done, size) => {
      bar.value = (at + done / size) / links.length;
    });
    const shown = JSON.parse(link.dataset.answer);
    const isAsked = found.kind === "answer" && canonical(found.question) === canonical(JSON.parse(link.dataset.question));
    require(isAsked && found.size === Number(link.dataset.height) + 1, "the proof is about a different question than the one that this page shows");
    require(!differences(found.answer, shown).length, "the proved answer differs from the one that this page shows");
    require(!at || found.root === root, "two proofs of this page are about different blocks");
    told.push(`${links.length > 1 ? `${link.textContent.replace("Proof for ", "")}: ` : ""}${answerInWords(found.answer)}`);
  }
  return { found, told, limits: SUMS, last: `from all ${counted(found.size, "block")} up to ${number(found.size - 1)}, none left out` };
}

const mean = (value) => (value === null ? "none" : `${decimal(value)} min`);
const share = (value) => (value === null ? "none" : `${decimal(100 * value)} %`);

function answerInWords(found) {
  if ("average_delay" in found) {
    return `mean delay ${mean(found.average_delay)}, mean departure delay ${mean(found.average_departure_delay)}, ` +
      `on time ${share(found.on_time_share_of_arrived)} of arrivals and ${share(found.on_time_share_of_scheduled)} of scheduled flights; ` +
      `${number(found.flights)} scheduled, ${number(found.arrived)} arrived, ${number(found.cancelled)} cancelled, ${number(found.no_arrival)} with no arrival recorded`;
  }
  if (!found.flights?.length) return counted(found.count, "flight");
  const ids = found.flights.slice(0, MOST_LEGS_NAMED).map((leg) => leg.TRANSACTION_ID);
  const more = found.count - ids.length;
  return `${counted(found.count, "leg")}: transaction${found.count === 1 ? "" : "s"} ${ids.join(", ")}${more ? ` and ${number(more)} more` : ""}`;
}

const CHECKS = { transaction, block, answer };

// --- the log that this browser remembers ---------------------------------------------------------------

// What became of the log that is `kept`: {alarm} if it is another one, else {said}, and {isKnown: false} if nobody can tell.
async function compared(kept, { checkpoint }, isTrusted) {
  if (!kept) {
    return { said: `This browser had not seen this log before. It keeps the current checkpoint (${counted(checkpoint.size, "block")}) and compares it at your next visit.` };
  }
  if (kept.origin !== checkpoint.origin) return { alarm: "origin" };
  if (isTrusted === false) return { alarm: "key" };
  if (checkpoint.size < kept.size) return olderRoot(kept, checkpoint);
  if (checkpoint.size === kept.size && checkpoint.root !== kept.root) return { alarm: "fork" };
  if (checkpoint.size > kept.size) {
    const root = await laterRoot(kept, checkpoint);
    if (root !== "same") return root;
  }
  const { size, time, first } = kept;
  const since = `Unchanged since block ${number(size - 1)}, which this browser saw ${ago(time)}`;
  return { said: `${since}${first.time < time ? `; watched since block ${number(first.size - 1)}, ${ago(first.time)}` : ""}.` };
}

// A checkpoint with fewer blocks than were seen. In a cluster that may be of a node that is behind: then another node,
// which these pages ask if the first does not know so many blocks, shows that those that were seen are still there.
async function olderRoot(kept, checkpoint) {
  let proof;
  try {
    proof = await (await fetched(`${BASE}/proofs/consistency?from=${checkpoint.size}&to=${kept.size}`)).json();
  } catch {
    return { alarm: "rollback" };
  }
  if (!leads(checkpoint.size, checkpoint.root, kept, proof)) return { alarm: "fork" };
  const behind = counted(kept.size - checkpoint.size, "block");
  return { said: `This is from a node that is ${behind} behind the log that this browser saw ${ago(kept.time)}; those blocks are still there.` };
}

async function laterRoot(kept, checkpoint) {
  const unknown = (reason) => ({
    isKnown: false,
    said: `This browser cannot tell whether the log is still the one that it saw ${ago(kept.time)}, up to block ${number(kept.size - 1)}: ${reason}.`,
  });
  let proof;
  try {
    proof = await (await fetched(`${BASE}/proofs/consistency?from=${kept.size}&to=${checkpoint.size}`)).json();
  } catch (error) {
    return unknown(error instanceof NoAnswer ? error.message : "the service sends no proof");
  }
  if (leads(kept.size, kept.root, checkpoint, proof)) return "same";
  const isOther = proof.from_root !== kept.root && leads(kept.size, proof.from_root, checkpoint, proof);
  return isOther ? { alarm: "fork" } : unknown("the proof that the service sends is wrong");
}

// Whether a proof shows that the tree of the checkpoint begins with the tree of so many blocks that has this root.
function leads(size, root, checkpoint, proof) {
  try {
    return hex(extended(size, checkpoint.size, base64(root), proof.path)) === hex(base64(checkpoint.root));
  } catch {
    return false;
  }
}

const CHANGED_KEY = "The key of the log has changed since. This browser could not check whether the old key has signed the new one, so " +
  "it still uses the old key. Ask the operator of the ledger in some other way than through these pages, or check a proof with scripts/verify.py.";

async function remember(section, memory, found, { key, isTrusted }) {
  const line = section.querySelector("[data-remembered]");
  const { origin, size, root } = found.checkpoint;
  const isFollowed = isTrusted !== null; // if nobody can tell, the old key stays the one that is expected
  const now = { origin, key: isFollowed ? key.text : memory.kept.key, size, root, time: Date.now() };
  const { alarm, said, isKnown = true } = await compared(memory?.kept, found, isTrusted);
  if (alarm) {
    keepAlarm({ kind: alarm, before: memory.kept, after: now, time: now.time });
    showAlarm();
  } else if (isKnown) {
    keepCheckpoint(now);
  }
  const unable = "This browser does not let these pages store anything, so it cannot tell whether the log is still that of an earlier visit.";
  const other = "This is not the log that this browser remembers: see the alarm above.";
  line.textContent = alarm ? other : memory ? said + (isFollowed ? "" : ` ${CHANGED_KEY}`) : unable;
  line.className = isKnown && isFollowed && !alarm ? "" : "notice warn";
  line.hidden = false;
}

// --- saying it ---------------------------------------------------------------------------------------

function signatureInWords({ key, isSigned }) {
  if (isSigned) return `that checkpoint is signed with the key ${key.id}`;
  const reason = isSecureContext ? "this browser does not know Ed25519" : "browsers check signatures only over HTTPS or on the ledger\u2019s own machine";
  return `the signature of that checkpoint was not checked here, because ${reason}`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function verdict({ found, told, last, limits = "", more = [] }, signature) {
  const chain = `the hashes lead from there to the checkpoint of the log, which has ${counted(found.checkpoint.size, "block")}; ${signatureInWords(signature)}`;
  const points = [...told, ...(last ? [last] : []), chain].map((text) => node("li", {}, `${capital(text)}.`));
  return node(
    "div",
    { class: "notice good" },
    node("p", {}, node("strong", {}, "Verified in this browser, from the proof:")),
    node("ul", { class: "checks" }, ...points),
    node("details", {}, node("summary", {}, "What this does not show"), node("p", {}, limits + EVERYBODY), ...more),
  );
}

function failure(error) {
  if (error instanceof NoAnswer || error instanceof BrokenOff) {
    return node("p", {}, `This browser has checked nothing, because it got no proof: ${error.message}.`);
  }
  if (error instanceof CannotCheck) return node("p", {}, `This browser has checked nothing. ${error.message}.`);
  const reason = error instanceof Refused ? error.message : `it is damaged, or is not a proof (${error.message})`;
  return node(
    "div",
    { class: "notice bad" },
    node("p", {}, node("strong", {}, "The proof is wrong."), ` Computed in this browser: ${reason}. What this page shows is not proved.`),
  );
}

// --- checking ------------------------------------------------------------------------------------------

async function verify(section, attempts = 1) {
  const place = section.querySelector("[data-verdict]");
  const memory = recalled(); // before the proof, which can then be no older, is fetched
  try {
    const result = await CHECKS[section.dataset.verify](section);
    const signature = await signatureOf(result.found, memory?.kept?.key);
    place.replaceChildren(verdict(result, signature));
    await remember(section, memory, result.found, signature);
  } catch (error) {
    if (error.status === 404 && attempts > 1) {
      setTimeout(() => verify(section, attempts - 1), AGAIN_AFTER_MS);
    } else {
      place.replaceChildren(failure(error));
    }
  }
}

// A transaction that is pending has a proof once it is mined: then `refresh.js` has nothing to fetch any more.
function whenMined(act) {
  const isMined = () => !document.querySelector("[data-refresh]");
  if (isMined()) return act();
  const observer = new MutationObserver(() => {
    if (!isMined()) return;
    observer.disconnect();
    act();
  });
  observer.observe(document.querySelector("main"), { childList: true });
}

function onRequest(section) {
  const row = section.querySelector("[data-check]");
  const bar = row.querySelector("progress");
  row.hidden = false;
  row.querySelector("button").addEventListener("click", async () => {
    if (!bar.hidden) return; // it is not disabled, as it would lose the focus
    [bar.hidden, bar.value] = [false, 0];
    await verify(section);
    bar.hidden = true;
  });
}

for (const section of document.querySelectorAll("[data-verify]")) {
  if (section.dataset.verify === "answer") onRequest(section);
  else {
    section.querySelector("form[data-check]")?.removeAttribute("hidden"); // what it asks for, scripts answer
    whenMined(() => verify(section, ATTEMPTS));
  }
}
