// Files and addresses that a session offers.

import type { Engine } from "../engine/client.ts";
import type { Player } from "../model/player.ts";
import { toFragment } from "../model/share.ts";
import { h, save } from "./dom.ts";

const TABLES = ["connections", "subflows", "links", "blocks", "subflow_samples", "connection_samples", "activities", "capacity"];

export class Exports {
  private note = h("p", { class: "note", role: "status" });
  readonly element: HTMLElement;

  constructor(
    private engine: Engine,
    private player: Player,
    private pictures: () => HTMLCanvasElement[],
    private failed: (message: string) => void,
  ) {
    const table = h("select", { "aria-label": "Table" }, ...TABLES.map((name) => h("option", {}, name)));
    this.element = h(
      "details",
      { class: "menu", id: "export" },
      h("summary", {}, "Share"),
      h(
        "div",
        { class: "sheet" },
        action("Copy a link to this session", () => this.share()),
        action("Scenario (TOML)", () => this.toml()),
        h("div", { class: "row" }, table, action("CSV", () => this.csv(table.value))),
        action("Picture (PNG)", () => this.png()),
        action("Capture (pcapng)", () => this.pcapng()),
        action("Copy the command", () => this.command()),
        this.note,
      ),
    );
  }

  private async share(): Promise<void> {
    const sources = this.player.sessions.map(({ source, toml }) => ({ ...source, toml }));
    history.replaceState(null, "", await toFragment(sources));
    await this.copy(location.href, "The address of this page now opens this session.");
  }

  private toml(): void {
    for (const { scenario, toml } of this.player.sessions) save(`${scenario.name}.toml`, toml, "text/plain");
  }

  private async csv(table: string): Promise<void> {
    for (const [session, { scenario }] of this.player.sessions.entries()) {
      await this.attempt(async () => {
        save(`${scenario.name}-${table}.csv`, await this.engine.ask("csv", { session, table }), "text/csv");
      });
    }
  }

  private png(): void {
    for (const [index, canvas] of this.pictures().entries()) {
      canvas.toBlob((blob) => {
        if (blob !== null) save(`picture-${index + 1}.png`, blob, "image/png");
      });
    }
  }

  private async pcapng(): Promise<void> {
    for (const [session, { scenario }] of this.player.sessions.entries()) {
      await this.attempt(async () => {
        const bytes = await this.engine.ask("pcapng", { session });
        save(`${scenario.name}.pcapng`, new Uint8Array(bytes), "application/octet-stream");
      });
    }
  }

  private async command(): Promise<void> {
    this.toml();
    const [first] = this.player.sessions;
    const command = `anabranch run ${first?.scenario.name ?? ""}.toml --seed ${first?.source.seed ?? "1"}`;
    await this.copy(command, `Saved the scenario. Run it with: ${command}`);
  }

  private async copy(text: string, note: string): Promise<void> {
    // Browsers forbid the clipboard on some pages. The note says what was to be copied.
    await navigator.clipboard.writeText(text).catch(() => undefined);
    this.note.textContent = note;
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => this.failed(error instanceof Error ? error.message : String(error)));
  }
}

function action(label: string, click: () => void | Promise<void>): HTMLButtonElement {
  return h("button", { type: "button", click: () => void click() }, label);
}
