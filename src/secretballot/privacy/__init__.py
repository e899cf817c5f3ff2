"""What privacy costs and how it is bought: exact noise, prices, mechanisms and the durable
ledger."""
