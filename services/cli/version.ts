import { readFileSync } from 'node:fs';

/** The version in package.json, which lies above both the sources and what is built of them. */
export function programVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        version: string;
      };
      return version;
    } catch {
      // Not at this depth.
    }
  }
  return 'unknown';
}
