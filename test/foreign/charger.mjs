// A charge point by a library that is not of this project: node charger.mjs LIBRARY URL PROTOCOL.
// It reads calls as lines of JSON, {"call", "payload"}, and answers each with a line, {"result"} or {"error"}.
// What it is asked it answers as a plain charger would, and tells in a line {"asked", "payload"}; what its
// library refuses of the other side's messages is a line {"invalid"}.
import { createInterface } from 'node:readline';

const [name, url, protocol] = process.argv.slice(2);
const id = 'CP1', password = 'shared';
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');

const key = (key, value) => ({ key, value, readonly: false });
const settings = { RateUnit: 'Current', ProfileStackLevel: '3', PeriodsPerSchedule: '6' };
const answers = {
  GetConfiguration: () => ({ configurationKey: [
    key('ChargeProfileMaxStackLevel', '3'), key('ChargingScheduleAllowedChargingRateUnit', 'Current'), key('ChargingScheduleMaxPeriods', '6'),
    key('ClockAlignedDataInterval', '900'), key('MeterValuesAlignedData', 'Energy.Active.Import.Register'),
  ] }),
  GetVariables: ({ getVariableData }) => ({ getVariableResult: getVariableData.map(({ component, variable }) => {
    const value = settings[variable.name];
    return value ? { attributeStatus: 'Accepted', attributeValue: value, component, variable } : { attributeStatus: 'UnknownVariable', component, variable };
  }) }),
  SetVariables: ({ setVariableData }) => ({ setVariableResult: setVariableData.map(({ component, variable }) => ({ attributeStatus: 'Accepted', component, variable })) }),
  GetCompositeSchedule: () => ({ status: 'Rejected' }), // many cannot say
  TriggerMessage: () => ({ status: 'NotImplemented' }),
};

function answer(action, payload) {
  tell({ asked: action, payload });
  return (answers[action] ?? (() => ({ status: 'Accepted' })))(payload);
}

const actions = [...Object.keys(answers), 'SetChargingProfile', 'ClearChargingProfile', 'ChangeConfiguration'];

/** Each library as a function that connects and returns how to call. */
const libraries = {
  async 'ocpp-rpc'() {
    const { RPCClient } = await import('ocpp-rpc');
    const { validators } = await import('./schemas21.mjs');
    const strict = { strictMode: true, strictModeValidators: validators };
    const client = new RPCClient({ endpoint: url, identity: id, password, protocols: [protocol], ...strict, reconnect: false });
    client.on('strictValidationFailure', ({ error }) => tell({ invalid: String(error) }));
    client.on('badMessage', ({ error }) => tell({ invalid: String(error) }));
    client.handle(({ method, params }) => answer(method, params));
    await client.connect();
    return (action, payload) => client.call(action, payload);
  },

  async 'ocpp-ts'() {
    const { OcppClient } = await import('ocpp-ts');
    const client = new OcppClient(id);
    for (const action of actions) client.on(action, (payload, done) => done(answer(action, payload)));
    const connected = new Promise((ready, failed) => { client.on('connect', ready); client.on('error', failed); });
    client.connect(url + '/', { Authorization: 'Basic ' + Buffer.from(`${id}:${password}`).toString('base64') });
    await connected;
    return (action, payload) => client.callRequest(action, payload);
  },

  async 'ts-ocpp'() {
    const { ChargePoint } = (await import('@voltbras/ts-ocpp')).default;
    const handler = ({ action, ocppVersion, ...payload }) => ({ action, ocppVersion, ...answer(action, payload) });
    const client = new ChargePoint(id, handler, url.replace('ws://', `ws://${id}:${password}@`));
    await client.connect();
    return async (action, payload) => {
      const { action: _, ocppVersion: __, ...result } = (await client.sendRequest({ ocppVersion: 'v1.6-json', action, payload }).run()).unsafeCoerce();
      return result;
    };
  },
};

const call = await libraries[name]();
tell({ result: {} });
for await (const line of createInterface(process.stdin)) {
  const { call: action, payload } = JSON.parse(line);
  try {
    tell({ result: await call(action, payload) });
  } catch (err) {
    tell({ error: String(err.stack ?? err) });
  }
}
process.exit(0);
