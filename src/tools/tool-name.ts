const allowed = /^[A-Za-z0-9_./-]{1,128}$/;

/** Throws unless the name is 1 to 128 of the characters every client accepts (2025-11-25, server/tools). */
export function assertToolName(name: string): void {
  if (allowed.test(name)) return;
  throw new TypeError(
    `${JSON.stringify(name)} cannot name a tool: use 1 to 128 of the characters A-Z a-z 0-9 _ . / -`,
  );
}
