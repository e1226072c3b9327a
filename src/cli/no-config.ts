import type { GatewayConfig } from "../gateway/config/config.ts";
import { parseConfigValue } from "../gateway/config/parse-config.ts";

/** What holds when there is no config. */
export const noConfig: GatewayConfig = parseConfigValue({ junctor: {} }, { file: "no config", env: {} });
