// Opens the tables in a file as streams of text, packed or not, never in memory as a whole. What a browser cannot unpack is sent in one
// piece: the ledger reads more formats.

const ENTRY = 0x02014b50, END = 0x06054b50; // signatures in a zip archive
const END_BYTES = 22, LONGEST_COMMENT = 65535;
const STORED = 0, DEFLATED = 8;
const IS_ENCRYPTED = 1;
const GZIP = [0x1f, 0x8b], ZIP = [0x50, 0x4b, 3, 4];
const WORKBOOKS = new Set(["[Content_Types].xml", "content.xml"]);
// As in backend/sources/packed.py:
export const BESIDE_TABLES = new RegExp(
  "^((.*/)?(|(__MACOSX|_temporary|_spark_metadata)/.*|_(SUCCESS|[a-z_]*metadata|[a-z]+ed_[0-9]+)|" +
    "(\\.[^/.]|~\\$)[^/]*(/.*)?|(md5|sha[0-9]+)sums?|[^/]*(readme|license|manifest|dictionary|description|documentation)[^/]*|" +
    "[^/]*\\.(html?|pdf|md|docx?|png|jpe?g|crc|md5|sha[0-9]+|py|r|ipynb|ini|lock)|thumbs\\.db|" +
    "unfinished/flights-[0-9]{12}\\.parquet|" +
    "(schema|load)\\.sql|(airlines|airports|carriers|planes|plane-data|weather|l_[a-z_]+)\\.csv))$", "i");

const GONE = "The file cannot be read any more: it was changed, moved or removed.";

export class Problem extends Error {}

export const startsWith = (bytes, start) => start.every((byte, at) => bytes[at] === byte);

// The names of tables, in numeric order: block9 before block10.
export function tablesAmong(names) {
  return names.filter((name) => !BESIDE_TABLES.test(name)).sort(byNumbers);
}

function byNumbers(left, right) {
  const [a, b] = [left, right].map((name) => name.split(/([0-9]+)/));
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
    const difference = at % 2 ? Number(a[at]) - Number(b[at]) : (a[at] > b[at]) - (a[at] < b[at]);
    if (difference) return difference;
  }
  return a.length - b.length;
}

async function bytesOf(blob) {
  try {
    return new Uint8Array(await blob.arrayBuffer());
  } catch {
    throw new Problem(GONE);
  }
}

// The files in a zip archive: {name, flags, method, crc, packed, size, at}. null: it cannot be read here.
async function entriesOf(file) {
  const tail = await bytesOf(file.slice(-END_BYTES - LONGEST_COMMENT));
  const view = new DataView(tail.buffer);
  let end = tail.length - END_BYTES;
  while (end >= 0 && view.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw new Problem("The zip archive is damaged or incomplete. Download it again.");
  const [count, size, at] = [view.getUint16(end + 10, true), view.getUint32(end + 12, true), view.getUint32(end + 16, true)];
  if (count === 0xffff || at === 0xffffffff) return null; // longer than 4 GB
  const directory = new DataView((await bytesOf(file.slice(at, at + size))).buffer);
  const entries = [];
  for (let place = 0; entries.length < count; ) {
    if (place + 46 > directory.byteLength || directory.getUint32(place, true) !== ENTRY) {
      throw new Problem("The zip archive is damaged or incomplete. Download it again.");
    }
    const [flags, method] = [directory.getUint16(place + 8, true), directory.getUint16(place + 10, true)];
    const [crc, packed, unpacked] = [16, 20, 24].map((offset) => directory.getUint32(place + offset, true));
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => directory.getUint16(place + offset, true));
    const name = new TextDecoder().decode(new Uint8Array(directory.buffer, place + 46, nameLength));
    entries.push({ name, flags, method, crc, packed, size: unpacked, at: directory.getUint32(place + 42, true) });
    place += 46 + nameLength + extra + comment;
  }
  return entries;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

// Passes on what is as the archive says, and fails at the end if it was not.
function verifying({ crc, size }) {
  let [sum, count] = [0xffffffff, 0];
  return new TransformStream({
    transform(bytes, controller) {
      for (const byte of bytes) sum = CRC[(sum ^ byte) & 0xff] ^ (sum >>> 8);
      count += bytes.length;
      if (count > size) throw new TypeError("too long");
      controller.enqueue(bytes);
    },
    flush() {
      if (count !== size || (sum ^ 0xffffffff) >>> 0 !== crc) throw new TypeError("damaged");
    },
  });
}

async function opened(file, entry) {
  const head = await bytesOf(file.slice(entry.at, entry.at + 30));
  const view = new DataView(head.buffer);
  const at = entry.at + 30 + view.getUint16(26, true) + view.getUint16(28, true);
  const packed = file.slice(at, at + entry.packed);
  const unpack = (stream) => (entry.method === STORED ? stream : stream.pipeThrough(new DecompressionStream("deflate-raw")));
  return { packed, unpack: (stream) => unpack(stream).pipeThrough(verifying(entry)) };
}

// The tables in a file: {name, size, open(seen)}. size: in bytes, packed. open: returns a stream of its
// bytes; seen(count) gets the numbers of packed bytes that were read.
export async function tablesOf(file) {
  const part = (name, size, find) => ({ name, size, open: async (seen) => streamOf(await find(), seen) });
  const whole = [part("", file.size, async () => ({ packed: file, unpack: (stream) => stream }))];
  const start = await bytesOf(file.slice(0, 4));
  if (startsWith(start, GZIP)) {
    const unpacked = part("", file.size, async () => ({ packed: file, unpack: (stream) => stream.pipeThrough(new DecompressionStream("gzip")) }));
    return (await isReadable(unpacked)) ? [unpacked] : whole; // not with zeros behind it, or a second member
  }
  if (!startsWith(start, ZIP)) return whole;
  const entries = await entriesOf(file);
  if (!entries || entries.some(({ name }) => WORKBOOKS.has(name))) return whole;
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  const tables = tablesAmong([...byName.keys()]).map((name) => byName.get(name));
  const canUnpack = ({ flags, method }) => !(flags & IS_ENCRYPTED) && [STORED, DEFLATED].includes(method);
  if (!tables.length || byName.size < entries.length || !tables.every(canUnpack)) return whole;
  return tables.map((entry) => part(tables.length > 1 ? entry.name : "", entry.packed, () => opened(file, entry)));
}

async function isReadable(table) {
  const stream = await table.open(() => {});
  return stream.pipeTo(new WritableStream()).then(() => true, () => false);
}

function streamOf({ packed, unpack }, seen) {
  const counting = new TransformStream({
    transform(bytes, controller) {
      seen(bytes.length);
      controller.enqueue(bytes);
    },
  });
  return unpack(packed.stream().pipeThrough(counting));
}

// The pieces of a stream, with errors that say what to do.
export async function* pieces(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw new Problem(error instanceof DOMException ? GONE : "The file is damaged or incomplete. Download it again.");
  } finally {
    reader.cancel().catch(() => {});
  }
}
