// Tables of a run, as rows of numbers.

import type { Frame, Schema, TableName } from "../engine/protocol.ts";
import { GROWING } from "../engine/protocol.ts";

export type Row = Record<string, number>;

/** A table whose rows grow, or are replaced. */
export class Table {
  private data: Float64Array[] = [];
  private count = 0;

  constructor(readonly schema: Schema) {}

  get rows(): number {
    return this.count;
  }

  append(rows: Float64Array): void {
    if (rows.length === 0) return;
    this.data.push(rows);
    this.count += rows.length / this.schema.columns.length;
  }

  replace(rows: Float64Array): void {
    this.data = [rows];
    this.count = rows.length / this.schema.columns.length;
  }

  /** The values of a column. */
  column(name: string): number[] {
    const width = this.schema.columns.length;
    const place = this.schema.columns.indexOf(name);
    if (place < 0) throw new Error(`there is no column ${name}`);
    const values: number[] = [];
    for (const part of this.data) {
      for (let at = place; at < part.length; at += width) values.push(part[at] ?? NaN);
    }
    return values;
  }

  /** All rows as objects. */
  objects(): Row[] {
    const width = this.schema.columns.length;
    const rows: Row[] = [];
    for (const part of this.data) {
      for (let at = 0; at < part.length; at += width) {
        const entries = this.schema.columns.map((name, column) => [name, part[at + column] ?? NaN]);
        rows.push(Object.fromEntries(entries) as Row);
      }
    }
    return rows;
  }

  /** The name behind a number of a column. */
  name(column: string, value: number): string {
    return this.schema.names[column]?.[value] ?? "";
  }
}

export type Tables = Record<TableName, Table>;

export function emptyTables(schemas: Record<TableName, Schema>): Tables {
  const entries = Object.entries(schemas).map(([name, schema]) => [name, new Table(schema)]);
  return Object.fromEntries(entries) as Tables;
}

/** Take over the rows of a frame. */
export function addFrame(tables: Tables, frame: Frame["tables"]): void {
  for (const [name, rows] of Object.entries(frame) as [TableName, Float64Array][]) {
    if ((GROWING as readonly string[]).includes(name)) tables[name].append(rows);
    else tables[name].replace(rows);
  }
}
