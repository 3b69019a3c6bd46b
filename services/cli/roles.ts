import { CliError, EXIT } from './exit.ts';

const ROLES = ['partitioner', 'worker', 'gateway'] as const;
export type Role = (typeof ROLES)[number];

export function parseRoles(text: string): Role[] {
  const roles = text.split(',').map((role) => role.trim());
  for (const role of roles) {
    if (!ROLES.includes(role as Role)) {
      throw new CliError(EXIT.usage, `--roles: "${role}" is not one of ${ROLES.join(', ')}`);
    }
  }
  return [...new Set(roles)] as Role[];
}

/** `host:port` or a port alone. */
export function parseAddress(text: string): { host: string; port: number } {
  const match = /^(?:(.+):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new CliError(EXIT.usage, `--http: "${text}" is not an address such as 127.0.0.1:8080`);
  }
  return { host: match[1] ?? '127.0.0.1', port };
}
