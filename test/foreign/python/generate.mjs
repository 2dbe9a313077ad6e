// Makes the Python client of flexd's document as openapi-generator does by default. The generator reads OpenAPI 3.0 alone, so a
// converter written by others takes the document back to it first; the two members that it leaves in place are taken out here.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Converter } from '@apiture/openapi-down-convert';
import { load } from 'js-yaml';

const generator = '../node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar';

const published = load(readFileSync('../../../internal/api/openapi.yaml', 'utf8'));
const older = new Converter(published, { allOfTransform: true }).convert();

// Version 3.0 has neither.
delete older.webhooks;
delete older.info.summary;

rmSync('generated', { recursive: true, force: true });
mkdirSync('generated');
writeFileSync('generated/openapi-3.0.json', JSON.stringify(older));

execFileSync('java', ['-jar', generator, 'generate', '-i', 'generated/openapi-3.0.json', '-g', 'python', '-o', 'generated',
  '--additional-properties=packageName=flexd_client'], { stdio: ['ignore', 'ignore', 'inherit'] });
