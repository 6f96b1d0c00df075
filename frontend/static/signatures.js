// Checks who signed a checkpoint: signed notes with Ed25519, as C2SP writes them. Browsers check Ed25519 only
// over HTTPS, or on the machine itself, and old ones not at all: then nothing is said of a signature.
import { sha256 } from "./sha256.js";
import { base64, bytesOf, hex, require } from "./trees.js";

const LOG = 1; // type of a key that signs logs
const SUCCESSION = "flightchain key succession";

// The key that is written NAME+ID+KEY.
export function keyOf(text) {
  const parts = /^(.*?)\+([0-9a-f]{8})\+(.+)$/s.exec(String(text).trim());
  require(parts, "the key of the log is missing, or is not a key");
  const [, name, id, rest] = parts;
  const data = base64(rest, 33);
  require(hex(sha256(bytesOf(`${name}\n`), data)).startsWith(id) && data[0] === LOG, "the key of the log is damaged, or is not a key");
  return { text: String(text).trim(), name, id, public: data.subarray(1) };
}

// Whether a key has signed a note: true, or null if this browser cannot tell. Throws if it has not.
async function isSigned(key, note) {
  const end = note.lastIndexOf("\n\n");
  const lines = end < 0 ? [] : note.slice(end + 2).split("\n");
  for (const line of lines.filter((one) => one.startsWith(`\u2014 ${key.name} `))) {
    const data = base64(line.slice(line.lastIndexOf(" ") + 1), 0);
    if (hex(data.subarray(0, 4)) !== key.id) continue;
    require(data.length === 68, "the signature of the log is wrong");
    const right = await verified(key.public, bytesOf(note.slice(0, end + 1)), data.subarray(4));
    require(right !== false, "the signature of the log is wrong");
    return right;
  }
  require(false, "the checkpoint is not signed by the key of the log");
}

async function verified(key, message, signature) {
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle) return null;
  let imported;
  try {
    imported = await subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error.name === "NotSupportedError" || error.name === "SyntaxError") return null;
    throw error;
  }
  return subtle.verify("Ed25519", imported, signature, message);
}

// The key that a log has now, if its old key has signed that: {key, isChecked}.
async function succeeded(key, successions) {
  let isChecked = true;
  for (const note of successions) {
    const [title, old, next] = String(note).split("\n");
    if (title !== SUCCESSION || old !== key.text) continue;
    isChecked = (await isSigned(key, note)) === true && isChecked;
    key = keyOf(next);
  }
  return { key, isChecked };
}

// Whether the checkpoint that something `found` leads to is signed by the key that it names: isSigned is true, or null
// if this browser cannot tell. isTrusted: whether that is a given key, or one that follows it, or null if this browser
// cannot tell that; true if none is given.
export async function signatureOf(found, trusted) {
  const key = keyOf(found.key);
  const followed = trusted ? await succeeded(keyOf(trusted), found.successions) : { key, isChecked: true };
  require(found.checkpoint.origin === key.name, `the checkpoint is of ${found.checkpoint.origin}, not of ${key.name}`);
  const right = await isSigned(key, found.note);
  const isTrusted = followed.key.text === key.text && (followed.isChecked || null);
  return { key, isSigned: right && (followed.isChecked || null), isTrusted };
}
