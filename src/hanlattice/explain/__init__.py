"""Pictures of what a model read and found."""
