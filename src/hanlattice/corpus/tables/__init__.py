"""Tables: CSV, Parquet and Arrow. A row holds a token and its tag, or a text and entities as in JSON formats."""
