// Cuts a table into slices of whole lines while it is read, and takes its fingerprint. A row is a line, for the ledger too: no cell goes
// over several. Works on bytes: in UTF-8 that of a line feed is nothing else. What has no lines is one slice.
import { Problem, pieces, startsWith } from "./unpacking.js";

const LINE_FEED = 10, RETURN = 13;
export const MOST_LINES = 5000;
export const MOST_BYTES = 4 * 2 ** 20;
export const LONGEST_LINE = 2 ** 18;
const SNIFFED_BYTES = 4000;
const UTF_16 = { "utf-16le": [0xff, 0xfe], "utf-16be": [0xfe, 0xff] };
const PACKED = [[0x28, 0xb5, 0x2f, 0xfd], [0x42, 0x5a, 0x68], [0x50, 0x41, 0x52, 0x31], [0x50, 0x4b, 3, 4], [0x1f, 0x8b]];
const NO_HEADER = /^\uFEFF?("?sep=.)?[\s",;|]*$/i; // a row of empty cells, or what Excel writes above the header
const LIST = /"(transactions|flights|data|results|records|rows|items)"\s*:\s*\[/; // in an object that holds all flights
const LAST_LINE = /\{"complete":true,"count":(\d+)[^\n]*\n?$/;

const text = (bytes) => new TextDecoder().decode(bytes);

function joined(pieces) {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  pieces.reduce((at, piece) => (bytes.set(piece, at), at + piece.length), 0);
  return bytes;
}

export class Cutter {
  // hasHeader: the first line that is not blank is a header, which no slice contains.
  constructor(hasHeader, mostLines = MOST_LINES, mostBytes = MOST_BYTES) {
    Object.assign(this, { hasHeader, mostLines, mostBytes });
    this.header = null; // its bytes, with what stands above it
    this.headerLines = 0;
    this.lines = 0;
    this.position = 0;
    this.lineStart = 0;
    this.held = []; // pieces of the current slice
    this.isFull = false;
    this.count = 0; // of slices
    this.current = { line: 1, lines: 0, start: 0 };
    this.hash = [0x811c9dc5, 0x2f6a3c1b];
  }

  // bytes: the next ones of the table. Returns the slices that end before them or in them: {bytes, line, lines}. line: number of its first.
  feed(bytes) {
    this.takeHash(bytes);
    const slices = [];
    let from = 0;
    for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) {
      if (this.isFull) slices.push(this.take());
      this.held.push(bytes.subarray(from, at + 1));
      from = at + 1;
      this.endLine(this.position + from);
    }
    if (from < bytes.length) {
      if (this.isFull) slices.push(this.take());
      this.held.push(bytes.subarray(from));
    }
    this.position += bytes.length;
    this.checkLength(this.position);
    return slices;
  }

  takeHash(bytes) {
    let [a, b] = this.hash;
    for (const byte of bytes) {
      a = Math.imul(a ^ byte, 0x01000193);
      b = Math.imul(b ^ (b >>> 15) ^ byte, 0x2c1b3c6d);
    }
    this.hash = [a, b];
  }

  // The table is at its end. Returns the last slice, in a list.
  finish() {
    if (this.position > this.lineStart) this.endLine(this.position);
    if (this.count && !this.hasHeader) this.leaveOutEnd();
    return this.current.lines || !this.count ? [this.take()] : [];
  }

  // An export ends with a line that says how many flights it has: of several slices, none gets it.
  leaveOutEnd() {
    const bytes = joined(this.held);
    const [line, count] = LAST_LINE.exec(text(bytes.subarray(-1000))) ?? [];
    if (!line) return;
    const rows = this.lines - 1;
    if (Number(count) !== rows) {
      throw new Problem(`The file has ${rows} flights but says that it has ${count}. Download it again.`);
    }
    this.held = [bytes.subarray(0, bytes.length - line.length)];
    this.current.lines -= 1;
  }

  endLine(end) {
    this.checkLength(end);
    this.lineStart = end;
    this.lines += 1;
    if (this.hasHeader && this.header === null) return this.endHeaderLine(end);
    this.current.lines += 1;
    this.isFull = this.current.lines >= this.mostLines || end - this.current.start >= this.mostBytes;
  }

  endHeaderLine(end) {
    this.headerLines += 1;
    const lines = text(joined(this.held)).replace(/\n$/, "").split("\n");
    if (!NO_HEADER.test(lines.at(-1))) {
      this.header = joined(this.held);
      this.held = [];
      this.current = { line: this.lines + 1, lines: 0, start: end };
    }
  }

  // Returns the current slice, which is then another.
  take() {
    const { line, lines, start } = this.current;
    const rows = joined(this.held);
    for (let at = rows.indexOf(RETURN); at >= 0; at = rows.indexOf(RETURN, at + 1)) {
      if (rows[at + 1] !== LINE_FEED) this.lines += 1; // ends a line for the ledger
    }
    const bytes = this.header ? joined([this.header, rows]) : rows;
    Object.assign(this, { held: [], isFull: false, count: this.count + 1 });
    this.current = { line: this.lines + 1, lines: 0, start: start + rows.length };
    return { bytes, line, lines };
  }

  checkLength(end) {
    if (end - this.lineStart > LONGEST_LINE) {
      throw new Problem(`Line ${this.lines + 1} is longer than ${LONGEST_LINE} bytes.`);
    }
  }

  get fingerprint() {
    return [this.position, ...this.hash.map((part) => part >>> 0)].map((part) => part.toString(16)).join("-");
  }

  // The line of the table that is row `row` of a slice.
  lineOf(slice, row) {
    return row <= this.headerLines ? row : slice.line + row - this.headerLines - 1;
  }
}

// The pieces of a table as UTF-8 with line feeds; the first has `SNIFFED_BYTES`, if there are so many, and a line feed, if there is one in
// the next `LONGEST_LINE` bytes.
async function* textOf(stream) {
  const all = pieces(stream);
  let start = await first(all, (bytes) => bytes.length >= SNIFFED_BYTES && (bytes.includes(LINE_FEED) || bytes.length > LONGEST_LINE));
  const coding = Object.keys(UTF_16).find((name) => startsWith(start, UTF_16[name]));
  const isMac = start.includes(RETURN) && !start.includes(LINE_FEED) && cutBy(start);
  const decoder = coding && new TextDecoder(coding, { fatal: true });
  const change = (bytes, more) => {
    if (!coding) return isMac ? bytes.map((byte) => (byte === RETURN ? LINE_FEED : byte)) : bytes;
    try {
      return new TextEncoder().encode(decoder.decode(bytes, { stream: more }));
    } catch {
      throw new Problem("The file begins as UTF-16 and is not. Save it as UTF-8.");
    }
  };
  yield change(start, true);
  for await (const bytes of all) yield change(bytes, true);
  if (coding) yield change(new Uint8Array(), false);
}

async function first(all, isEnough) {
  let bytes = new Uint8Array();
  while (!isEnough(bytes)) {
    const { done, value } = await all.next();
    if (done) return bytes;
    bytes = joined([bytes, value]);
  }
  return bytes;
}

// "header", "lines" (of JSON) or "" if a table that begins so cannot be cut.
function cutBy(start) {
  if (start.subarray(0, SNIFFED_BYTES).includes(0) || PACKED.some((magic) => startsWith(start, magic))) return "";
  const begin = text(start).trimStart();
  if (begin.startsWith("[")) return "";
  if (!begin.startsWith("{")) return "header";
  const line = begin.split("\n", 1)[0].trimEnd();
  return line.endsWith("}") && !LIST.test(line) ? "lines" : "";
}

// Takes a table that cannot be cut, as one slice.
class Whole extends Cutter {
  constructor(most) {
    super(false);
    this.most = most;
  }

  feed(bytes) {
    this.takeHash(bytes);
    this.position += bytes.length;
    this.held.push(bytes);
    if (this.position <= this.most) return [];
    const most = `${Math.floor(this.most / 2 ** 20)} MB`;
    throw new Problem(`This format can only be sent in one piece of at most ${most}. Unpack the file, make CSV of it, or run on the ledger’s machine: python -m backend import FILE`);
  }

  finish() {
    return [this.take()];
  }
}

// Cuts a table of `tablesOf` into slices: {cutter, bytes, line, lines}. most: how many bytes can be sent in one piece.
export async function* slicesOf(table, seen, most) {
  let cutter = null;
  for await (const bytes of textOf(await table.open(seen))) {
    if (!cutter) {
      const by = cutBy(bytes);
      cutter = by ? new Cutter(by === "header") : new Whole(most);
    }
    for (const slice of cutter.feed(bytes)) yield { cutter, ...slice };
  }
  for (const slice of cutter.finish()) yield { cutter, ...slice };
}
