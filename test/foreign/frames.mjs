// Reads messages of OCPP 2.1 from its input, one a line in the order in which they went over a connection, and prints those that the
// schemas of the Open Charge Alliance refuse.
import { createInterface } from 'node:readline';
import { validators } from './schemas21.mjs';

const [callType, resultType] = [2, 3];
const actions = new Map(); // of the calls, by id
let count = 0;

function check(line) {
  const [type, id, ...rest] = JSON.parse(line);
  count += 1;

  if (type === callType) {
    const [action, payload] = rest;
    actions.set(id, action);
    validators[0].validate(`urn:${action}.req`, payload);
  }
  if (type === resultType) validators[0].validate(`urn:${actions.get(id)}.conf`, rest[0]);
}

for await (const line of createInterface(process.stdin)) {
  try {
    check(line);
  } catch (err) {
    console.log(`${err.message}: ${line}`);
  }
}

if (count === 0) console.log('no messages');
