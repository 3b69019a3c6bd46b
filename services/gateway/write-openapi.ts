/** Writes openapi/openapi.yaml: `npm run openapi`. */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openapiYaml } from './openapi-yaml.ts';

const root = packageRoot(dirname(fileURLToPath(import.meta.url)));
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
const path = join(root, 'openapi', 'openapi.yaml');
await writeFile(path, await openapiYaml(version));
console.error(`wrote ${path}`);

/** The sources and what is built of them lie at different depths below it. */
function packageRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : packageRoot(dirname(folder));
}
