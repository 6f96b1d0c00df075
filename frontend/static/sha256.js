// SHA-256 (FIPS 180-4), at once: browsers have one of their own only over HTTPS, and that one answers later.

// The first 32 bits after the point of the square or cube root of a small number, exactly.
function fraction(number, power) {
  const wanted = BigInt(number) << BigInt(32 * power);
  let root = 0n;
  for (let bit = 1n << 40n; bit; bit >>= 1n) {
    if ((root + bit) ** BigInt(power) <= wanted) root += bit;
  }
  return Number(BigInt.asIntN(32, root));
}

const primes = [];
for (let one = 2; primes.length < 64; one += 1) if (primes.every((prime) => one % prime)) primes.push(one);
const ROOTS = Int32Array.from(primes, (prime) => fraction(prime, 3));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(prime, 2));

const schedule = new Int32Array(64);

function compress(state, view, start) {
  const w = schedule;
  for (let t = 0; t < 16; t += 1) w[t] = view.getInt32(start + 4 * t);
  for (let t = 16; t < 64; t += 1) {
    const early = w[t - 15], late = w[t - 2];
    const s0 = ((early >>> 7) | (early << 25)) ^ ((early >>> 18) | (early << 14)) ^ (early >>> 3);
    const s1 = ((late >>> 17) | (late << 15)) ^ ((late >>> 19) | (late << 13)) ^ (late >>> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  let a = state[0], b = state[1], c = state[2], d = state[3];
  let e = state[4], f = state[5], g = state[6], h = state[7];
  for (let t = 0; t < 64; t += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const one = (h + s1 + ((e & f) ^ (~e & g)) + ROOTS[t] + w[t]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

// The hash of parts (Uint8Array), one after the other: 32 bytes.
export function sha256(...parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const padded = new Uint8Array(((length + 8 >> 6) + 1) << 6);
  let at = 0;
  for (const part of parts) {
    padded.set(part, at);
    at += part.length;
  }
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(padded.length - 4, length << 3);
  const state = START.slice();
  for (let start = 0; start < padded.length; start += 64) compress(state, view, start);
  const hash = new DataView(new ArrayBuffer(32));
  state.forEach((word, at) => hash.setInt32(4 * at, word));
  return new Uint8Array(hash.buffer);
}
