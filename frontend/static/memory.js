// What this browser keeps of the ledger's log: the last checkpoint that a proof led to, and an alarm until somebody
// dismisses it. {kept: {origin, key, size, root, time, first: {size, time}}, alarm: {kind, before, after, time}}

import { BASE } from "./page.js";

const NAME = `flightchain${BASE}`; // below another path there may be another ledger

const isMoment = (one) => Number.isSafeInteger(one?.size) && Number.isFinite(one.time);
const isCheckpoint = (one) => isMoment(one) && [one.origin, one.key, one.root].every((text) => typeof text === "string");

// What is kept; {} if there is nothing of use, null if this browser keeps nothing for pages.
export function recalled() {
  let text;
  try {
    text = localStorage.getItem(NAME);
  } catch {
    return null;
  }
  try {
    const { kept, alarm } = JSON.parse(text ?? "{}");
    const isAlarm = Number.isFinite(alarm?.time) && isCheckpoint(alarm.before) && isCheckpoint(alarm.after);
    return { kept: isCheckpoint(kept) && isMoment(kept.first) ? kept : undefined, alarm: isAlarm ? alarm : undefined };
  } catch {
    return {};
  }
}

function keep(memory) {
  try {
    localStorage.setItem(NAME, JSON.stringify(memory));
  } catch {
    // It is full, or not for pages: then there is nothing to compare with at the next visit.
  }
}

// Keep a checkpoint, unless another page has kept a later one, or an alarm, in the meantime.
export function keepCheckpoint(checkpoint) {
  const { kept, alarm } = recalled() ?? {};
  if (alarm || (kept && kept.size > checkpoint.size)) return;
  const first = kept?.first ?? { size: checkpoint.size, time: checkpoint.time };
  keep({ kept: { ...checkpoint, first } });
}

// Keep an alarm beside the checkpoint that was expected. The first one stays.
export function keepAlarm(alarm) {
  const memory = recalled() ?? {};
  if (!memory.alarm) keep({ ...memory, alarm });
}

export function forget() {
  localStorage.removeItem(NAME);
}
