"""Reads the tables of a batch with pyarrow, pandas, polars or Spark, while it runs or later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from .files import FACTS, read_facts, read_file, table_files
from .schema import COLUMNS, TABLES, arrow, fixed_schema


class BatchTables:
    """The tables in a directory: ``BatchTables("out").hist("pandas")``.

    ``facts`` is the content of ``batch.json``: suite, parameters, seeds, machine.
    """

    def __init__(self, directory: str | Path) -> None:
        """Raises ``UsageError`` for a directory without a batch."""
        self.directory: Path = Path(directory)
        path = self.directory / FACTS
        if not path.exists():
            raise UsageError(f"{directory} has no batch: there is no {path}")
        self.facts: dict[str, Any] = read_facts(self.directory)

    def table(self, name: str, like: Any = "arrow") -> Any:
        """Return a table; ``like`` is "arrow", "pandas", "polars" or a Spark session."""
        if name not in TABLES:
            raise UsageError(f"there is no table {name!r}; there are {', '.join(TABLES)}")
        if not isinstance(like, str):
            return self._spark(name, like)
        pyarrow = arrow()
        tables = self._read_files(name)
        if tables:
            table = pyarrow.concat_tables(tables, promote_options="permissive")
            if len(tables) > 1:
                table = table.sort_by("run_id")
        else:
            if name == "runs":
                raise UsageError(f"{self.directory} has no run yet")
            table = fixed_schema(name, {}).empty_table()
        if like == "arrow":
            return table
        if like == "pandas":
            return table.to_pandas()
        if like == "polars":
            import polars

            return polars.from_arrow(table)
        raise UsageError(f"a table can be like arrow, pandas, polars or a session, not {like!r}")

    def _read_files(self, name: str) -> list[Any]:
        files = table_files(self.directory, name)
        while True:
            try:
                return [read_file(path) for path in files]
            except FileNotFoundError:  # the parts have just been merged
                before, files = files, table_files(self.directory, name)
                if files == before:
                    raise

    def _spark(self, name: str, session: Any) -> Any:
        files = [str(path) for path in table_files(self.directory, name)]
        for file in files:
            read_file(Path(file), columns=["run_id"])  # Spark's own error is a page long
        if files:
            return session.read.option("mergeSchema", "true").parquet(*files)
        columns = ", ".join(f"{column} {_SQL[kind]}" for column, (kind, _) in COLUMNS[name].items())
        return session.createDataFrame([], columns)

    def runs(self, like: Any = "pandas") -> Any:
        """Return the table with a row per run: parameters, status, measured values."""
        return self.table("runs", like)

    def hist(self, like: Any = "pandas") -> Any:
        """Return the table with a row per run, metric and bucket: ``value`` represents the bucket,
        ``n`` is the number of values in it."""
        return self.table("hist", like)

    def series(self, like: Any = "pandas") -> Any:
        """Return the table with a row per run and second of virtual time."""
        return self.table("series", like)

    def samples(self, like: Any = "pandas") -> Any:
        """Return the table with a row per measured value, of the runs that kept them."""
        return self.table("samples", like)

    def seconds(self) -> list[tuple[dict[str, Any], int, float]]:
        """Return parameters, id and duration in seconds of every run whose duration is known."""
        runs, cost = self.table("runs"), self.table("cost")
        duration_ms = dict(
            zip(cost["run_id"].to_pylist(), cost["wall_ms"].to_pylist(), strict=True)
        )
        names = [name for name in self.facts["parameters"] if name in runs.column_names]
        return [
            ({name: row[name] for name in names}, row["run_id"], duration_ms[row["run_id"]] / 1000)
            for row in runs.select(["run_id", *names]).to_pylist()
            if duration_ms.get(row["run_id"], 0) > 0
        ]

    def cost(self, like: Any = "pandas") -> Any:
        """Return the table with a row per run: the engine and worker, and the time it took."""
        return self.table("cost", like)


_SQL = {"int64": "long", "int32": "int", "double": "double", "string": "string"}
