"""Pictures of what was measured; they need the extra `report`."""
