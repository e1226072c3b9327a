export type { ServerFacts } from "./controls.ts";
export type { OnServer } from "./fleet.ts";
export type { GatewayOptions } from "./gateway-options.ts";
export { createGateway, startGateway } from "./gateway.ts";
export type { Gateway, RunningGateway } from "./running-gateway.ts";
