"""Tables larger than memory: functions of their rows that are summed, as streams of rows or as SQL."""
