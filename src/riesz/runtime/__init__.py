"""What everything runs on: threads, memory for results, interned objects, work without recursion, generated source."""
