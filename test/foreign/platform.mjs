// A central system by a library that is not of this project, which holds every message of both sides against
// the schemas of the Open Charge Alliance. It says its port in a line {"port"}, and each message that it bills by
// in a line {"record"}; what its library refuses is a line {"invalid"}. "down" and "up" on its input are read
// by lines, and answered with {"done"}.
import { createInterface } from 'node:readline';
import { RPCServer } from 'ocpp-rpc';
import { validators } from './schemas21.mjs';

const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');
const server = new RPCServer({ protocols: ['ocpp1.6', 'ocpp2.0.1', 'ocpp2.1'], strictMode: true, strictModeValidators: validators });
const clients = new Set(), numbers = new Map();
let down = false;

server.auth((accept, reject) => (down ? reject(503) : accept()));

const billed = ['StartTransaction', 'StopTransaction', 'MeterValues', 'TransactionEvent'];

/** A transaction that is said again has its number. */
function number(params) {
  const key = JSON.stringify(params);
  if (!numbers.has(key)) numbers.set(key, numbers.size + 1);
  return numbers.get(key);
}

function answer(method, params) {
  if (billed.includes(method)) tell({ record: method + ' ' + JSON.stringify(params) });
  const info = { status: 'Accepted' };
  switch (method) {
    case 'BootNotification': return { status: 'Accepted', interval: 777, currentTime: new Date().toISOString() };
    case 'Heartbeat': return { currentTime: new Date().toISOString() };
    case 'StartTransaction': return { transactionId: number(params), idTagInfo: info };
    case 'StopTransaction': return { idTagInfo: info };
    case 'Authorize': return params.idTag ? { idTagInfo: info } : { idTokenInfo: info };
    default: return {};
  }
}

server.on('client', (client) => {
  clients.add(client);
  client.on('close', () => clients.delete(client));
  client.on('strictValidationFailure', ({ error }) => tell({ invalid: String(error) }));
  client.handle(({ method, params }) => answer(method, params));
});

const http = await server.listen(0, '127.0.0.1');
tell({ port: http.address().port });
for await (const line of createInterface(process.stdin)) {
  down = line === 'down';
  if (down) await Promise.all([...clients].map((client) => client.close({ force: true })));
  tell({ done: line });
}
process.exit(0);
