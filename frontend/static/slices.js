// Cuts a file of lines into slices of whole lines, while it is read, and takes its fingerprint.
// A row is a line, for the ledger too: a quoted cell cannot go over several. So the lines of a slice
// mean the same as in the whole file, wherever it is cut. Works on bytes: in UTF-8 the byte of a
// line feed is nothing else.

const LINE_FEED = 10;
export const MOST_LINES = 5000;
export const MOST_BYTES = 4 * 2 ** 20;
export const LONGEST_LINE = 2 ** 18;

export class Cutter {
  // hasHeader: line 1 is a header, which no slice contains.
  constructor(hasHeader, mostLines = MOST_LINES, mostBytes = MOST_BYTES) {
    Object.assign(this, { hasHeader, mostLines, mostBytes });
    this.headerEnd = 0;
    this.slices = []; // of {start, end, line, lines}: bytes from start to end; line: number of its first
    this.lines = 0;
    this.position = 0;
    this.lineStart = 0;
    this.current = { start: 0, end: 0, line: 1, lines: 0 };
    this.hash = [0x811c9dc5, 0x2f6a3c1b];
  }

  // bytes: the next ones of the file.
  feed(bytes) {
    let [a, b] = this.hash;
    for (const byte of bytes) {
      a = Math.imul(a ^ byte, 0x01000193);
      b = Math.imul(b ^ (b >>> 15) ^ byte, 0x2c1b3c6d);
    }
    this.hash = [a, b];
    for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) {
      this.endLine(this.position + at + 1);
    }
    this.position += bytes.length;
    this.checkLength(this.position);
  }

  // The file is at its end.
  finish() {
    if (this.position > this.lineStart) this.endLine(this.position);
    if (this.current.lines || !this.slices.length) this.endSlice();
  }

  // An export ends with a line that says how many flights it has, which is true of no slice. If there
  // are several slices, none gets that line. tail: the last bytes of the file, as text.
  leaveOutEnd(tail) {
    const [line, count] = /\{"complete":true,"count":(\d+)[^\n]*\n?$/.exec(tail) ?? [];
    if (!line || this.slices.length === 1) return;
    const rows = this.slices.reduce((sum, slice) => sum + slice.lines, 0) - 1;
    if (Number(count) !== rows) {
      throw new RangeError(`The file has ${rows} flights but says that it has ${count}. Download it again.`);
    }
    const last = this.slices.at(-1);
    last.end -= line.length;
    last.lines -= 1;
    if (!last.lines) this.slices.pop();
  }

  endLine(end) {
    this.checkLength(end);
    this.lineStart = end;
    this.lines += 1;
    if (this.hasHeader && this.lines === 1) {
      this.headerEnd = end;
      this.current = { start: end, end, line: 2, lines: 0 };
      return;
    }
    this.current.end = end;
    this.current.lines += 1;
    if (this.current.lines >= this.mostLines || end - this.current.start >= this.mostBytes) this.endSlice();
  }

  endSlice() {
    this.slices.push(this.current);
    this.current = { start: this.current.end, end: this.current.end, line: this.lines + 1, lines: 0 };
  }

  checkLength(end) {
    if (end - this.lineStart > LONGEST_LINE) {
      throw new RangeError(`Line ${this.lines + 1} is longer than ${LONGEST_LINE} bytes.`);
    }
  }

  get fingerprint() {
    return [this.position, ...this.hash.map((part) => part >>> 0)].map((part) => part.toString(16)).join("-");
  }

  // The line of the file that is row `row` of a slice, which was sent after the header.
  lineOf(slice, row) {
    if (!this.hasHeader) return slice.line + row - 1;
    return row === 1 ? 1 : slice.line + row - 2;
  }
}
