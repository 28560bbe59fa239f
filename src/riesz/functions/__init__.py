"""Python functions as programs: kept traces, points, maps inside traces, control flow, derivatives of one's own."""
