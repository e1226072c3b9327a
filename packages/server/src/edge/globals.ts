// Replaces Node's globals in the bundle for runtimes without Node, which scripts/bundle.mjs makes.

import { createHash, createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "./crypto.ts";

/** Runs code without a watchdog: these platforms themselves end a request that takes too long. */
class Script {
  runInContext(context: { readonly run: () => void }): void {
    context.run();
  }
}

const modules: { readonly [name: string]: object } = {
  "node:crypto": { createHash, createCipheriv, createDecipheriv, hkdfSync, randomBytes },
  "node:vm": { createContext: (context: object) => context, Script },
};

export const process = {
  env: {},
  getBuiltinModule: (name: string): object => {
    const found = modules[name];
    if (found === undefined) throw new TypeError(`This runtime has no ${name}`);
    return found;
  },
  hrtime: (): readonly [seconds: number, nanoseconds: number] => {
    const now = performance.now();
    return [Math.floor(now / 1000), (now % 1000) * 1e6];
  },
  cpuUsage: (): { readonly user: number; readonly system: number } => ({ user: 0, system: 0 }),
};

/** A timer with the `unref` of Node, which has no effect here. */
class Timer {
  readonly id: ReturnType<typeof globalThis.setTimeout>;

  constructor(id: ReturnType<typeof globalThis.setTimeout>) {
    this.id = id;
  }

  unref(): this {
    return this;
  }
}

export const setTimeout = (callback: () => void, ms?: number): Timer =>
  new Timer(globalThis.setTimeout(callback, ms));
export const setInterval = (callback: () => void, ms?: number): Timer =>
  new Timer(globalThis.setInterval(callback, ms));
export const setImmediate = (callback: () => void): Timer => setTimeout(callback, 0);
export const clearTimeout = (timer: Timer | undefined): void => globalThis.clearTimeout(timer?.id);
export const clearInterval = (timer: Timer | undefined): void => globalThis.clearInterval(timer?.id);
