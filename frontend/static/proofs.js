// Checks proofs of the ledger, in the order and with the rules of scripts/verify.py, from a transaction or an
// answer up to the checkpoint of the log. Whatever is wrong, missing or of another kind is `Refused`, or
// throws another error: only what returns is proved. Their form is told in backend/trust/proofs.py.
import { sha256 } from "./sha256.js";
import { base64, bytesOf, extended, fromHex, hex, included, leafHash, Refused, require, spanned, Tree, whole } from "./trees.js";

export class CannotCheck extends Error {} // the browser lacks something
export class BrokenOff extends Error {} // not all of a proof came

const MOST_BYTES = 8 * 2 ** 20; // in a line
const MOST_VALUES = 2 ** 18; // in a line
const MOST_CHARACTERS = 300; // in a value of a flight, with its name
const MOST_TRANSACTIONS = 1000; // in a block
const TEXT = /"[^"\\]*(?:\\.[^"\\]*)*"?/g; // in JSON
const INNERMOST = /[[{][^[\]{}]*[\]}]/g;
const PAUSE_AFTER_MS = 50;
const HASH_BITS = 256;
const NAMES = ["YEAR", "DAY_OF_WEEK", "FL_DATE", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN_AIRPORT_ID",
  "ORIGIN", "ORIGIN_CITY_NAME", "ORIGIN_STATE_NM", "DEST_AIRPORT_ID", "DEST", "DEST_CITY_NAME", "DEST_STATE_NM",
  "DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "CANCELLED", "AIR_TIME", "timestamp"];
const CARRIER = "OP_CARRIER_AIRLINE_ID";
const DAY = "FL_DATE";
const PERIOD = { INITIAL_DATE: "text", FINAL_DATE: "text" };
const LEG = { OP_CARRIER_FL_NUM: "number", [DAY]: "text" };
const PARAMETERS = { // those with which each question can be asked
  average_delays: [{ [CARRIER]: "number", ...PERIOD }],
  flight_counter: [{ ORIGIN_CITY_NAME: "text", DEST_CITY_NAME: "text", ...PERIOD }],
  filter_transactions: [LEG, { [CARRIER]: "number", ...LEG }],
};
const SUMS = ["flights", "cancelled", "arrived", "departed", "on_time", "sum_arr_delay", "sum_dep_delay"];
const MEANS = [
  ["average_delay", "sum_arr_delay", "arrived"],
  ["average_departure_delay", "sum_dep_delay", "departed"],
  ["on_time_share_of_arrived", "on_time", "arrived"],
  ["on_time_share_of_scheduled", "on_time", "flights"],
];

// The one JSON text of integers, texts and null, and objects of these (RFC 8785).
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(",")}}`;
}

function kindOf(value) {
  if (Number.isSafeInteger(value)) return "number";
  return typeof value === "string" ? "text" : value === null ? "nothing" : "none of these";
}

// What JSON holds if it is neither large nor deep, and has nothing of `never` beside texts.
function read(text, what, depth, never = /(?<![.\d])\d{16}|[tfNI]/) {
  let bare = text.replace(TEXT, "");
  const isSmall = bare.split(",", MOST_VALUES + 1).length <= MOST_VALUES && !never.test(bare);
  for (let at = 0; at < depth; at += 1) bare = bare.replace(INNERMOST, "");
  require(isSmall && !/[[\]{}]/.test(bare), `${what} is cut off, or not as in a proof`);
  return JSON.parse(text);
}

// The object or array in canonical JSON (RFC 8785), of nothing but integers, texts and null.
function parsed(text, what) {
  require(typeof text === "string", `${what} is missing`);
  const found = read(text, what, 1, /\d{16}|[tfNI.e]/);
  require(found && canonical(found) === text, `${what} is not canonical JSON`);
  return found;
}

// --- blocks ----------------------------------------------------------------------------------------

// A header, and its hash, which must show the proof of work.
function headerOf(text) {
  const header = parsed(text, "a header");
  const hashed = sha256(bytesOf(text));
  const { version, difficulty_bits: bits, transaction_count: count } = header;
  const isKnown = version === 1 && whole(count) && count <= MOST_TRANSACTIONS && !text.includes("-");
  require(isKnown, "a header is of an unknown form");
  const isWorked = whole(bits) && bits <= HASH_BITS && BigInt(`0x${hex(hashed)}`) >> BigInt(HASH_BITS - bits) === 0n;
  require(isWorked, "a header lacks its proof of work");
  return [header, hashed];
}

// Each block with its header, from block 0 on. roots: takes that of the tree. told: is told how many there were.
async function* chained(lines, size, roots, told) {
  const tree = new Tree();
  let below = "0".repeat(64);
  let first = 0;
  let at = 0;
  let pausedAt = performance.now();
  for await (const block of lines) {
    const [header, hashed] = headerOf(block.header);
    const place = `block ${tree.size}`;
    require(header.height === tree.size && tree.size < size, `${place} is not the next one`);
    require(header.previous_hash === below, `${place} does not name the hash of the block before`);
    require(header.history_root === hex(tree.root()), `${place} names other blocks before it`);
    require(header.first_transaction === first, `${place} does not begin with id ${first}`);
    require(whole(header.timestamp) && header.timestamp >= at, `${place} is older than the block before`);
    [below, first, at] = [hex(hashed), first + header.transaction_count, header.timestamp];
    tree.add(hashed);
    yield [block, header];
    if (performance.now() - pausedAt > PAUSE_AFTER_MS) {
      told(tree.size, size);
      await new Promise((resume) => setTimeout(resume)); // so that the page can be used meanwhile
      pausedAt = performance.now();
    }
  }
  require(tree.size === size, `the proof is cut off: it has ${tree.size} of ${size} blocks`);
  roots.set(size, tree.root());
}

async function unpacked(packed, most, place) {
  if (typeof DecompressionStream === "undefined") {
    throw new CannotCheck("This browser cannot unpack the blocks in the proof (it has no DecompressionStream)");
  }
  const pieces = [];
  let size = 0;
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      pieces.push(read.value);
      size += read.value.length;
      require(size <= most, `${place}: its body is too large`);
    }
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(`${place} has another body`);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

// The columns of a block, whose body must be what the header commits to in three ways.
async function columnsOf(block, header) {
  const place = `block ${header.height}`;
  const { first_transaction: first, transaction_count: count } = header;
  const body = await unpacked(base64(block.body, 0), 2 ** 16 + 6000 * count, place);
  require(hex(sha256(body)) === header.body_hash, `${place} has another body`);
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const end = body.indexOf(10);
  const sizes = read(decoder.decode(body.subarray(0, end)), place, 2, /[^\][,\d]/);
  const rest = body.subarray(end + 1);
  require(end >= 0 && sizes.length === NAMES.length, `${place}: its body has other columns`);
  const columns = { TRANSACTION_ID: Array.from({ length: count }, (_, row) => first + row) };
  const texts = { TRANSACTION_ID: columns.TRANSACTION_ID.map((id) => `"TRANSACTION_ID":${id}`) };
  let at = 0;
  NAMES.forEach((name, column) => {
    const [valueBytes, codeBytes] = sizes[column];
    require(sizes[column].length === 2 && whole(valueBytes) && whole(codeBytes), `${place}: column ${name} has no size`);
    const values = parsed(decoder.decode(rest.subarray(at, at + valueBytes)), `${place}: column ${name}`);
    let codes = rest.subarray(at + valueBytes, (at += valueBytes + codeBytes));
    if (values.length > 256) { // all low bytes come first, then all high bytes
      require(codes.length === 2 * count, `${place}: column ${name} lacks rows`);
      const [low, high] = [codes.subarray(0, count), codes.subarray(count)];
      codes = Array.from(low, (one, row) => one | (high[row] << 8));
    }
    require(Array.isArray(values) && codes.length === count, `${place}: column ${name} lacks rows`);
    const written = values.map((value) => `"${name}":${canonical(value)}`);
    require(written.every((one) => one.length < MOST_CHARACTERS), `${place}: column ${name} has a value that is too long`);
    columns[name] = [];
    texts[name] = [];
    for (const code of codes) {
      require(code < values.length, `${place}: column ${name} has no value ${code}`);
      columns[name].push(values[code]);
      texts[name].push(written[code]);
    }
  });
  require(at === rest.length, `${place}: its body goes on after its columns`);
  const names = Object.keys(texts).sort();
  const tree = new Tree();
  for (let row = 0; row < count; row += 1) tree.add(bytesOf(`{${names.map((name) => texts[name][row]).join(",")}}`));
  require(hex(tree.root()) === header.transactions_root, `${place} has other transactions`);
  const cells = cellsOf(columns);
  const summary = new Tree(...cells.map((cell) => bytesOf(canonical(cell)))).root();
  require(hex(summary) === header.summary_root, `${place} has sums of other flights`);
  return { columns, cells };
}

// --- cells: the sums of a block's flights, for each carrier and day ----------------------------------

const compared = (a, b) => (a < b ? -1 : Number(a > b));
const keyCompared = ([carrier, day], [otherCarrier, otherDay]) => compared(carrier, otherCarrier) || compared(day, otherDay);

function cellsOf(columns) {
  const cells = new Map();
  columns[CARRIER].forEach((carrier, row) => {
    const day = columns[DAY][row];
    const key = canonical([carrier, day]);
    if (!cells.has(key)) cells.set(key, { [CARRIER]: carrier, [DAY]: day, ...Object.fromEntries(SUMS.map((one) => [one, 0])) });
    const cell = cells.get(key);
    const [late, left] = [columns.ARR_DELAY[row], columns.DEP_DELAY[row]];
    const numbers = [carrier, columns.CANCELLED[row], late ?? 0, left ?? 0];
    require(typeof day === "string" && numbers.every(Number.isSafeInteger), "a flight has values of another kind");
    cell.flights += 1;
    cell.cancelled += columns.CANCELLED[row];
    if (late !== null) {
      cell.arrived += 1;
      cell.on_time += Number(late < 15);
      cell.sum_arr_delay += late;
    }
    if (left !== null) {
      cell.departed += 1;
      cell.sum_dep_delay += left;
    }
  });
  return [...cells.values()].sort((a, b) => keyCompared([a[CARRIER], a[DAY]], [b[CARRIER], b[DAY]]));
}

// The cells that a block shows, which must include all from `low` to `high`, or all if these are null.
function cellsShown(block, header, low, high) {
  const place = `block ${header.height}`;
  const { cells: texts, first, count } = block;
  require(Array.isArray(texts), `${place}: it shows no cells`);
  const cells = texts.map((text) => parsed(text, "a cell"));
  const root = spanned(first, texts.map((text) => leafHash(bytesOf(text))), count, block.hashes);
  require(hex(root) === header.summary_root, `${place} has other cells than these`);
  const keys = cells.map((cell) => [cell[CARRIER], cell[DAY]]);
  const areKeys = keys.every(([carrier, day]) => Number.isSafeInteger(carrier) && typeof day === "string");
  const isOrdered = areKeys && keys.every((key, at) => !at || keyCompared(keys[at - 1], key) < 0);
  require(isOrdered, `${place}: its cells are out of order`);
  const isBegun = first === 0 || (low && keys.length && keyCompared(keys[0], low) < 0);
  const isEnded = first + cells.length === count || (high && keys.length && keyCompared(keys.at(-1), high) > 0);
  require(isBegun && isEnded, `${place}: cells may be missing`);
  return cells;
}

// --- answers ---------------------------------------------------------------------------------------

function isDay(text) {
  return /^(?!0000)\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().startsWith(text);
}

function statusOf(leg) {
  if (leg.CANCELLED) return "cancelled";
  if (leg.ARR_DELAY === null) return "no_arrival";
  return leg.ARR_DELAY >= 15 ? "late" : "on_time";
}

// The answer to a question, from what blocks show. most: how many flights it has.
async function answerTo(asked, blocks, most) {
  const { name, ...given } = asked;
  const isAverage = name === "average_delays";
  const kinds = canonical(Object.fromEntries(Object.entries(given).map(([one, value]) => [one, kindOf(value)])));
  const isKnown = typeof name === "string" && Object.hasOwn(PARAMETERS, name) && PARAMETERS[name].some((form) => canonical(form) === kinds);
  require(isKnown, `"${name}" does not have these parameters`);
  const carrier = given[CARRIER] ?? null;
  const [since, until] = Object.keys(PERIOD).map((one) => given[one] ?? given[DAY]);
  require(isDay(since) && isDay(until) && since <= until, "the days are wrong");
  const [low, high] = carrier === null ? [null, null] : [[carrier, since], [carrier, until]];
  const equal = Object.entries(given).filter(([one]) => NAMES.includes(one));
  const total = Object.fromEntries(SUMS.map((one) => [one, 0]));
  const legs = [];
  let count = 0;
  for await (const [block, header] of blocks) {
    const found = "body" in block ? await columnsOf(block, header) : null;
    for (const cell of found ? found.cells : cellsShown(block, header, low, high)) {
      if ((carrier !== null && cell[CARRIER] !== carrier) || cell[DAY] < since || cell[DAY] > until) continue;
      require(found || isAverage, `block ${header.height} leaves out flights that may count`);
      for (const one of SUMS) {
        total[one] += cell[one];
        require([cell[one], total[one]].every(Number.isSafeInteger), `block ${header.height}: a cell has no ${one}`);
      }
    }
    const days = found && !isAverage ? found.columns[DAY] : [];
    days.forEach((day, row) => {
      const isAsked = since <= day && day <= until && equal.every(([one, value]) => found.columns[one][row] === value);
      if (!isAsked) return;
      count += 1;
      if (count > most) return;
      const leg = Object.fromEntries(Object.entries(found.columns).map(([one, values]) => [one, values[row]]));
      legs.push({ ...leg, BLOCK_HEIGHT: header.height, status: statusOf(leg) });
    });
  }
  if (!isAverage) return { count, ...(name === "filter_transactions" ? { flights: legs } : {}) };
  const means = MEANS.map(([one, sum, count]) => [one, total[count] ? total[sum] / total[count] : null]);
  const { flights, arrived, cancelled } = total;
  return { ...Object.fromEntries(means), flights, arrived, cancelled, no_arrival: flights - cancelled - arrived };
}

// Which members of an answer are not those of another one.
export function differences(found, said) {
  const names = new Set([...Object.keys(found), ...Object.keys(said)]);
  return [...names].filter((name) => !(name in found && name in said) || canonical(found[name]) !== canonical(said[name]));
}

// --- proofs ----------------------------------------------------------------------------------------

// The origin, size and root (Base64) that a checkpoint names. It says nothing of its signatures.
export function checkpointOf(note) {
  require(typeof note === "string", "the proof has no checkpoint");
  const [origin, size, root] = note.split("\n");
  require(/^[1-9]\d{0,14}$/.test(size ?? ""), "a checkpoint has no number of blocks");
  base64(root);
  return { origin, size: Number(size), root };
}

// What a proof shows: {kind, …}. roots: takes those of the log's tree, by number of blocks.
async function shown(head, lines, roots, told) {
  const { kind, size, from = 1 } = head;
  require(head.flightchain_proof === 1 && Number.isInteger(from), "the proof is of an unknown form");
  require(whole(size) && size <= checkpointOf(head.checkpoint).size, "the proof is of more blocks than its checkpoint");
  if (kind === "transaction") {
    const transaction = parsed(head.transaction, "the transaction");
    const [header, hashed] = headerOf(head.header);
    require(whole(transaction.TRANSACTION_ID) && whole(header.first_transaction), "the transaction has no number");
    const row = transaction.TRANSACTION_ID - header.first_transaction;
    const root = included(leafHash(bytesOf(head.transaction)), row, header.transaction_count, head.path);
    require(hex(root) === header.transactions_root, `the transaction is not in block ${header.height}`);
    roots.set(size, included(leafHash(hashed), header.height, size, head.history));
    return { kind, transaction, text: head.transaction, height: header.height };
  }
  if (kind === "consistency") {
    const oldRoot = base64(head.from_root);
    roots.set(head.from, oldRoot);
    roots.set(size, extended(head.from, size, oldRoot, head.path));
    require(hex(roots.get(size)) === hex(base64(head.root)), "the proof does not lead to the root that it names");
    return { kind, from: head.from };
  }
  const blocks = chained(lines, size, roots, told);
  if (kind === "chain") {
    let transactions = 0;
    for await (const [block, header] of blocks) transactions += (await columnsOf(block, header)).columns.YEAR.length;
    return { kind, transactions };
  }
  require(kind === "answer", `proofs of the kind ${canonical(kind ?? null)} are unknown`);
  const answer = await answerTo(head.question, blocks, canonical(head.answer).length / 300);
  const wrong = differences(answer, head.answer);
  require(!wrong.length, `the answer is wrong: ${wrong.join(", ")}`);
  return { kind, question: head.question, answer };
}

// The checkpoint to which the root of `size` blocks leads: {size, root, checkpoint, note, key, successions}. The
// signature of the checkpoint is not looked at here.
function anchored(head, size, root) {
  const checkpoint = checkpointOf(head.checkpoint);
  const top = extended(size, checkpoint.size, root, head.consistency);
  require(hex(top) === hex(base64(checkpoint.root)), "the proof does not lead to the signed checkpoint");
  const { checkpoint: note, key, successions = [] } = head;
  return { size, root: hex(root), checkpoint, note, key, successions };
}

// What the lines of a proof show, and the checkpoint to which that leads.
export async function proved(lines, told = () => {}) {
  const { value: head, done } = await lines.next();
  require(!done && head !== null && typeof head === "object", "the proof is empty");
  const roots = new Map();
  const found = await shown(head, lines, roots, told);
  require((await lines.next()).done, "the file goes on after its proof");
  return { ...found, ...anchored(head, head.size, roots.get(head.size)) };
}

// The same for a block, from its header and the proof that the tree of the blocks below it is a beginning of the
// tree that has it, too. For block 0 that is the proof of consistency of one block with itself.
export function blockProved(headerText, head) {
  const [header, hashed] = headerOf(headerText);
  const { height } = header;
  const size = height + 1;
  require(head.kind === "consistency" && head.size === size, "the proof is about something else");
  // The path has the hash of the new leaf; without that it is the path from the new leaf to the root.
  const isPeak = Math.log2(height) % 1 === 0; // then the path leaves out the one peak below
  const path = isPeak ? [btoa(String.fromCharCode(...fromHex(header.history_root)))] : head.path.filter((_, at) => at !== 1);
  const root = included(leafHash(hashed), height, size, height ? path : []);
  return { kind: "block", height, header, hash: hex(hashed), ...anchored(head, size, root) };
}

// The root of a block's transactions, as the service shows them.
export function transactionsRoot(transactions) {
  return hex(new Tree(...transactions.map((one) => bytesOf(canonical(one)))).root());
}

// The lines of a proof, while it comes. Throws where it breaks off.
export async function* linesOf(stream) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const reader = stream.getReader();
  const next = () => reader.read().catch((error) => {
    throw new BrokenOff(error.message);
  });
  let pieces = []; // of a line whose end has not come yet
  let size = 0;
  let isFirst = true;
  async function taken() {
    const line = decoder.decode(await new Blob(pieces).arrayBuffer());
    require(!isFirst || line.startsWith("{"), "the proof does not begin with an object");
    [pieces, size, isFirst] = [[], 0, false];
    return read(line, "a line", 4);
  }
  function add(piece) {
    pieces.push(piece);
    size += piece.length;
    require(size <= MOST_BYTES, "a line of the proof is too long");
  }
  for (let got = await next(); !got.done; got = await next()) {
    let rest = got.value;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      add(rest.subarray(0, end + 1));
      yield await taken();
      rest = rest.subarray(end + 1);
    }
    if (rest.length) add(rest);
  }
  if (size) yield await taken();
}
