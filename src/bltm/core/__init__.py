"""What every layer stands on: the convention for T, random streams, records, errors, files."""
