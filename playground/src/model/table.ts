// Tables of a run, as rows of numbers.

import type { Frame, Schema, TableName } from "../engine/protocol.ts";
import { GROWING } from "../engine/protocol.ts";

export type Row = Record<string, number>;

/** A table whose rows grow, or are replaced. */
export class Table {
  private columns: number[][] = [];

  constructor(readonly schema: Schema) {
    this.replace(new Float64Array());
  }

  append(rows: Float64Array): void {
    const width = this.columns.length;
    for (const [place, column] of this.columns.entries()) {
      for (let at = place; at < rows.length; at += width) column.push(rows[at] ?? NaN);
    }
  }

  replace(rows: Float64Array): void {
    this.columns = this.schema.columns.map(() => []);
    this.append(rows);
  }

  /** The values of a column. */
  column(name: string): readonly number[] {
    const column = this.columns[this.schema.columns.indexOf(name)];
    if (column === undefined) throw new Error(`there is no column ${name}`);
    return column;
  }

  /** All rows as objects. */
  objects(): Row[] {
    const names = this.schema.columns;
    const rows = (this.columns[0] ?? []).map((): Row => ({}));
    for (const [place, column] of this.columns.entries()) {
      const name = names[place] ?? "";
      for (const [row, value] of column.entries()) (rows[row] ??= {})[name] = value;
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
