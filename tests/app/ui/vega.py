"""The columns that a chart's specification asks for, and those of its data."""

import json
import re
from typing import Any

from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df


def columns(node: Any) -> set[str]:
    """Those in fields and in expressions of a specification."""
    if isinstance(node, list):
        return set().union(*map(columns, node))
    if isinstance(node, str):
        return set(re.findall(r"datum\.(\w+)", node))
    if not isinstance(node, dict):
        return set()
    named = {node["field"]} if isinstance(node.get("field"), str) else set()
    parts = (v for k, v in node.items() if k not in ("data", "datasets", "labelExpr"))
    return named.union(*map(columns, parts))


def inline(node: Any) -> set[str]:
    """The columns of data that stand in the specification itself."""
    if isinstance(node, list):
        return set().union(*map(inline, node))
    if not isinstance(node, dict):
        return set()
    rows = node["values"] if isinstance(node.get("values"), list) else ()
    own = {column for row in rows if isinstance(row, dict) for column in row}
    return own.union(*map(inline, node.values()))


def missing(chart: Any) -> set[str]:
    """The columns that a chart on a page lacks; none where its data come later."""
    tables = [
        chart.proto.data.data,
        *(dataset.data.data for dataset in chart.proto.datasets),
    ]
    frames = map(convert_arrow_bytes_to_pandas_df, filter(None, tables))
    data_columns = {column for frame in frames for column in frame.columns}
    spec = json.loads(chart.proto.spec)
    return columns(spec) - data_columns - inline(spec) if data_columns else set()
