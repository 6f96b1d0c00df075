// Bytes, how they are written, and Merkle trees of their hashes (RFC 6962). Whatever is wrong is `Refused`.
import { sha256 } from "./sha256.js";

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

export class Refused extends Error {}

export function require(isRight, reason) {
  if (!isRight) throw new Refused(reason);
}

// --- bytes and texts -------------------------------------------------------------------------------

const encoder = new TextEncoder();
export const whole = (value, least = 0) => Number.isSafeInteger(value) && value >= least;

export function bytesOf(text) {
  require(!/\p{Surrogate}/u.test(text), "a text ends within a character");
  return encoder.encode(text);
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
  require(/^([0-9a-f]{2})*$/.test(text), "a hash is not written in hexadecimal digits");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// The bytes that are written so; `size` of them unless that is 0.
export function base64(text, size = 32) {
  let data = "";
  try {
    data = atob(text);
  } catch {
    throw new Refused(`"${String(text).slice(0, 50)}" is not Base64`);
  }
  require(btoa(data) === text && (!size || data.length === size), `"${text.slice(0, 50)}" is not ${size || "some"} bytes in Base64`);
  return Uint8Array.from(data, (one) => one.charCodeAt(0));
}

// --- trees (RFC 6962) ------------------------------------------------------------------------------

export const leafHash = (data) => sha256(LEAF, data);
const node = (left, right) => sha256(NODE, left, right);

// The largest power of two below a size: there its tree splits.
function middleOf(size) {
  let middle = 1;
  while (2 * middle < size) middle *= 2;
  return middle;
}

// A tree that grows. peaks: the roots of its perfect subtrees, from the left.
export class Tree {
  constructor(...leaves) {
    this.size = 0;
    this.peaks = [];
    for (const data of leaves) this.add(data);
  }

  add(data) {
    let peak = leafHash(data);
    for (let size = this.size; size % 2; size = (size - 1) / 2) peak = node(this.peaks.pop(), peak);
    this.peaks.push(peak);
    this.size += 1;
  }

  root() {
    return this.peaks.length ? this.peaks.reduceRight((right, left) => node(left, right)) : sha256();
  }
}

// The root of the tree of `size` leaves to which a path leads from the hash of leaf `index`.
export function included(hashed, index, size, path) {
  require(whole(index) && whole(size) && index < size && Array.isArray(path) && size > 1 === path.length > 0, "a path does not fit the size of its tree");
  if (size === 1) return hashed;
  const below = path.slice(0, -1);
  const other = base64(path.at(-1));
  const middle = middleOf(size);
  if (index < middle) return node(included(hashed, index, middle, below), other);
  return node(other, included(hashed, index - middle, size - middle, below));
}

// The root of the tree of `size` leaves, if a path shows that it begins with an older tree.
export function extended(old, size, oldRoot, path) {
  require(Array.isArray(path), "a proof has no path");
  const reason = `the log of ${size} blocks does not begin with that of ${old}`;
  const hashes = path.map((one) => base64(one));
  require(whole(old, 1) && whole(size) && old <= size, reason);
  const taken = () => {
    require(hashes.length, reason);
    return hashes.pop();
  };
  function walk(old, size, isFirst) {
    if (old === size) {
      const root = isFirst ? oldRoot : taken();
      return [root, root];
    }
    const middle = middleOf(size);
    const other = taken();
    if (old <= middle) {
      const [before, after] = walk(old, middle, isFirst);
      return [before, node(after, other)];
    }
    const [before, after] = walk(old - middle, size - middle, false);
    return [node(other, before), node(other, after)];
  }
  const [before, after] = walk(old, size, true);
  require(hex(before) === hex(oldRoot) && !hashes.length, reason);
  return after;
}

// The root of the tree of `size` leaves, from adjacent ones and the subtrees beside them.
export function spanned(first, leaves, size, beside) {
  const reason = "the hashes beside the cells do not fit";
  require(whole(first) && whole(size) && size <= 1000 && Array.isArray(beside), reason);
  const others = beside.map((one) => base64(one));
  const stop = first + leaves.length;
  let at = 0;
  function walk(low, high) {
    if (!leaves.length || stop <= low || high <= first) {
      require(others.length, reason);
      return others.shift();
    }
    if (high - low === 1) return leaves[at++];
    const middle = low + middleOf(high - low);
    return node(walk(low, middle), walk(middle, high));
  }
  const root = size ? walk(0, size) : sha256();
  require(stop <= size && !others.length, reason);
  return root;
}
