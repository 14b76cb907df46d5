"""The encoders' building blocks: modules that several systems share."""
