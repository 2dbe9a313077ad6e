// The schemas of the Open Charge Alliance for OCPP 2.1, from typed-ocpp: ocpp-rpc 2.2.1 has them too, under names that it does not
// find by itself.
import ocppRpc from 'ocpp-rpc';
import { OCPP21 } from 'typed-ocpp';

const named = ([name, schema]) => ({ ...schema, $id: 'urn:' + name.replace(/Request$/, '.req').replace(/Response$/, '.conf') });

export const validators = [ocppRpc.createValidator('ocpp2.1', Object.entries(OCPP21.schemas).map(named))];
